import { createHash } from "node:crypto";
import { SILENT_LOG } from "../../src/base/log.ts";
import { type Leases, SOLE_LEASES } from "../../src/cluster/cluster-contract.ts";
import { type ExternalPlaylists, NO_OWNER } from "../../src/library/contract.ts";
import { createLanguageReader } from "../../src/library/draft-languages.ts";
import { createExternalPlaylists } from "../../src/library/external-playlists.ts";
import type { BroadcastRefresher } from "../../src/library/external-refresher.ts";
import { createItems } from "../../src/library/items.ts";
import { createSourceRows } from "../../src/library/source-rows.ts";
import { createTasks } from "../../src/library/tasks.ts";
import type { KeyValueStore } from "../../src/runtime/contract.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { ListServer } from "./list-server.ts";
import { until } from "./until.ts";

const languages = createLanguageReader();

/** Dependencies that a test can replace. */
export interface Given {
  readonly store?: KeyValueStore;
  readonly clock?: FakeClock;
  readonly server?: ListServer;
  readonly broadcasts?: BroadcastRefresher;
  readonly leases?: Leases;
  readonly told?: string[];
}

/** External playlists on real items in memory, with fake servers and a fake clock. */
export async function openExternal(given: Given = {}) {
  const { store = openMemory(), clock = new FakeClock(), server = new ListServer(), told = [] } = given;
  const tell = (message: string, fields?: object) =>
    void told.push(`${message} ${JSON.stringify(fields ?? {})}`);
  const log = { ...SILENT_LOG, error: tell, warn: tell, info: tell, debug: tell };
  const sha1 = (bytes: Uint8Array) => new Uint8Array(createHash("sha1").update(bytes).digest());
  const items = await createItems({ store, clock, log, sha1 });
  const tasks = createTasks({ clock, log });
  const rows = createSourceRows(store, log, async () => {});
  const { broadcasts } = given;
  const playlists = await createExternalPlaylists({
    leases: given.leases ?? SOLE_LEASES,
    ...{ store, clock, log, items, tasks, rows, languages, outbound: server, random: () => 0 },
    ...(broadcasts && { broadcasts }),
  });
  const idle = () =>
    until(() => tasks.list().every(({ state }) => state !== "running"), "the end of all tasks");
  return {
    ...{ store, clock, server, items, tasks, playlists, told, idle },
    /** Adds a list at `url` and waits for its first refresh. */
    async add(
      url: string,
      settings: Partial<Parameters<ExternalPlaylists["add"]>[0]> & { updateNow?: boolean } = {},
    ) {
      const { updateNow = true, ...others } = settings;
      const usual = { category: "", name: "list", updateInterval: 3600, login: "", password: "" };
      const id = await playlists.add(
        { type: "content", url, ...usual, ...others },
        { updateNow, allowPrivateUrls: false, owner: NO_OWNER },
      );
      await idle();
      return id;
    },
    async refresh(id: number) {
      const task = await playlists.refresh(id);
      await idle();
      return tasks.get(task)!;
    },
    async titles(): Promise<string[]> {
      return (await items.query({ sort: "added" })).items.map(({ title }) => title);
    },
    /** Simulates the end of the process. */
    async close() {
      playlists.close();
      await tasks.close();
    },
  };
}
