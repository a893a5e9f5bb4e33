import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { Task } from "../../src/library/contract.ts";
import { type ControlMethod, controlMethod, PRIVATE, PUBLIC } from "./method.ts";
import { integer, required, text } from "./params.ts";
import { inspectOptions } from "./service-content.ts";

/** `parse_m3u_playlist` (interface: Service methods). */
export const parseM3uPlaylist: ControlMethod = controlMethod({
  name: "parse_m3u_playlist",
  summary: "Returns the programme guide (EPG) URLs of a playlist on another server",
  ...PUBLIC,
  params: z.object({ url: required(text).describe("The URL of an M3U playlist") }),
  result: z.object({ epg_sources: z.array(z.string()) }),
  run: async ({ url }, call) => ({ epg_sources: await call.library.guidesOf(url, inspectOptions(call)) }),
});

/** A page treats a task as ended if the list has not contained it for this long. */
const TASK_TIMEOUT_SECONDS = 60;

const taskResult = z.object({
  id: z.int(),
  msg: z.string().describe("A description to display"),
  timeout: z.int().describe("Seconds after which a task that is no longer listed has ended"),
  actions: z.array(z.string()).describe("What a client should reload when the task ends"),
  done: z.int(),
  total: z.int().nullable(),
});

const taskStatusResult = taskResult.extend({
  task_id: z.int(),
  status: z.enum(["running", "done", "failed"]),
  problem: z.string().nullable(),
});

/** Background tasks, which deployed pages poll every second. */
export const taskMethods = [
  controlMethod({
    name: "get_background_tasks",
    summary: "Lists running imports and refreshes, and those that failed less than a minute ago",
    ...PRIVATE,
    isExtra: true,
    params: z.object({ category: text.describe("content or broadcast; default: all") }),
    result: z.array(taskResult),
    async run({ category }, { library }) {
      return library.tasks.list(category).filter(isListed).map(presentTask);
    },
  }),
  controlMethod({
    name: "get_playlist_task_status",
    summary: "Returns the progress of a task",
    ...PRIVATE,
    isExtra: true,
    params: z.object({ task_id: required(integer) }),
    result: taskStatusResult,
    async run({ task_id }, { library }) {
      const task = library.tasks.get(task_id);
      if (!task) throw new SluiceError("unknown_task", `task ${task_id} does not exist or ended long ago`);
      return presentTaskStatus(task);
    },
  }),
];

/** CHOICE(background-tasks): clients treat a task that is not listed as done, so done tasks are not listed. */
function isListed({ state }: Task): boolean {
  return state !== "done";
}

/** Converts a task, with its state, to JSON. */
export function presentTaskStatus(task: Task): z.output<typeof taskStatusResult> {
  return { task_id: task.id, status: task.state, problem: task.problem, ...presentTask(task) };
}

function presentTask({ id, message, problem, actions, done, total }: Task): z.output<typeof taskResult> {
  const msg = problem === null ? message : `${message}: ${problem}`;
  return { id, msg, timeout: TASK_TIMEOUT_SECONDS, actions: [...actions], done, total };
}
