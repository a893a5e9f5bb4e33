import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { Task } from "../../src/library/contract.ts";
import { controlMethod } from "./method.ts";
import { integer, required, text } from "./params.ts";
import { inspectOptions } from "./service-content.ts";

/** Other people's lists (interface: Service methods). */
export const listMethods = [
  controlMethod({
    name: "parse_m3u_playlist",
    summary: "The programme guides that a playlist elsewhere names",
    isPublic: true,
    isRemote: true,
    isOpenToPages: false,
    params: z.object({ url: required(text).describe("The URL of an M3U playlist") }),
    result: z.object({ epg_sources: z.array(z.string()) }),
    run: async ({ url }, call) => ({ epg_sources: await call.library.guidesOf(url, inspectOptions(call)) }),
  }),
];

/** Seconds after which a page that no longer finds a task in the list takes it to be over. */
const TASK_TIMEOUT_SECONDS = 60;

const taskResult = z.object({
  id: z.int(),
  msg: z.string().describe("What is being done, to show to people"),
  timeout: z.int().describe("Seconds; a task that is no longer listed is over after them at the latest"),
  actions: z.array(z.string()).describe("What to load anew when it is over"),
  done: z.int(),
  total: z.int().nullable(),
});

/** Work that goes on after its request was answered; deployed pages ask for it every second. */
export const taskMethods = [
  controlMethod({
    name: "get_background_tasks",
    summary: "Imports and refreshes that are running, and those that failed less than a minute ago",
    isPublic: false,
    isRemote: true,
    isOpenToPages: false,
    isExtra: true,
    params: z.object({ category: text.describe("content or broadcast; all where it is absent") }),
    result: z.array(taskResult),
    async run({ category }, { library }) {
      return library.tasks.list(category).filter(isShown).map(presentTask);
    },
  }),
  controlMethod({
    name: "get_playlist_task_status",
    summary: "How far a task is",
    isPublic: false,
    isRemote: true,
    isOpenToPages: false,
    isExtra: true,
    params: z.object({ task_id: required(integer) }),
    result: taskResult.extend({
      task_id: z.int(),
      status: z.enum(["running", "done", "failed"]),
      problem: z.string().nullable(),
    }),
    async run({ task_id }, { library }) {
      const task = library.tasks.get(task_id);
      if (!task) throw new SluiceError("unknown_task", `there is no task ${task_id}, or it is long over`);
      return { task_id, status: task.state, problem: task.problem, ...presentTask(task) };
    },
  }),
];

/** CHOICE(background-tasks): whoever polls takes a task that is not listed for done; so those that are done are not. */
function isShown({ state }: Task): boolean {
  return state !== "done";
}

function presentTask({ id, message, problem, actions, done, total }: Task): z.output<typeof taskResult> {
  const msg = problem === null ? message : `${message}: ${problem}`;
  return { id, msg, timeout: TASK_TIMEOUT_SECONDS, actions: [...actions], done, total };
}
