import type { Sha1 } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Clock, Files, KeyValueStore } from "../runtime/contract.ts";
import { createAccessControl } from "./access-control.ts";
import { type AccountsParts, createAccounts } from "./accounts.ts";
import { createBreathe } from "./breathe.ts";
import type {
  AccessControl,
  Accounts,
  ExportOptions,
  ExternalPlaylists,
  Images,
  ImportOptions,
  Items,
  Tasks,
} from "./contract.ts";
import { createLanguageReader } from "./draft-languages.ts";
import { exportItems } from "./export.ts";
import { createExternalPlaylists } from "./external-playlists.ts";
import type { BroadcastRefresher } from "./external-refresher.ts";
import { guidesOf } from "./guides.ts";
import { createImages } from "./images.ts";
import { createImporter } from "./import.ts";
import { openImportGuides } from "./import-guides.ts";
import { openImportMarks } from "./import-marks.ts";
import { createItems } from "./items.ts";
import { createSourceRows } from "./source-rows.ts";
import { createTasks } from "./tasks.ts";

/** What is remembered: the user's lists, other people's lists, who may ask. The routes see this and nothing below it. */
export interface Library {
  readonly items: Items;
  readonly externalPlaylists: ExternalPlaylists;
  readonly tasks: Tasks;
  readonly access: AccessControl;
  readonly accounts: Accounts;
  readonly images: Images;
  /**
   * Imports a playlist in the background and resolves to the task as soon as the body has been read far enough to know
   * that it is one; rejects with `not_a_playlist`. The body is read to its end before it resolves, so that it may be a request's.
   */
  importPlaylist(body: ReadableStream<Uint8Array>, options: ImportOptions): Promise<number>;
  /** The items as a playlist, written while it is read. */
  exportPlaylist(options: ExportOptions): ReadableStream<Uint8Array>;
  /** The URLs of the programme guides that a playlist elsewhere names. */
  guidesOf(
    url: string,
    options: { readonly allowPrivateUrls: boolean; readonly signal?: AbortSignal },
  ): Promise<string[]>;
  /** Ends refreshes and imports, makes everything safe, and closes the store. */
  close(): Promise<void>;
}

/** What a library is made of. */
export interface LibraryParts {
  /** The library's own from now on. */
  readonly store: KeyValueStore;
  readonly clock: Clock;
  readonly files: Files;
  /** For pictures; need not exist yet. */
  readonly folder: string;
  readonly outbound: Outbound;
  readonly randomBytes: (length: number) => Uint8Array;
  readonly scrypt: AccountsParts["scrypt"];
  readonly sha1: Sha1;
  readonly random: Random;
  readonly log: Log;
  readonly google: AccountsParts["google"];
  /** The access token that the settings say; none: one is made and kept. */
  readonly fixedToken?: string | undefined;
  /** Absent where broadcasting is not there. */
  readonly broadcasts?: BroadcastRefresher;
}

/** Opens what is remembered: reads all records once, and goes on with the refreshes that are due or were interrupted. */
export async function createLibrary(parts: LibraryParts): Promise<Library> {
  const { store, clock, outbound, randomBytes } = parts;
  const log = parts.log.named("library");
  const items = await createItems({ ...parts, log });
  const tasks = createTasks({ clock, log });
  const access = await createAccessControl(parts);
  const images = await createImages({ ...parts, log });
  const importGuides = await openImportGuides(store);
  const languages = createLanguageReader();
  const marks = await openImportMarks(store, tasks, log);
  const importPlaylist = createImporter({ items, tasks, clock, languages, guides: importGuides, marks });
  // Last: from here on it works by itself.
  const rows = createSourceRows(store, log, createBreathe(clock));
  const externalPlaylists = await createExternalPlaylists({ ...parts, log, items, tasks, rows, languages });
  const guides = (id: number | undefined) =>
    id === undefined
      ? [...new Set([...importGuides.all(), ...externalPlaylists.guides()])]
      : externalPlaylists.guides(id);
  return {
    items,
    externalPlaylists,
    tasks,
    access,
    accounts: createAccounts(parts),
    images,
    importPlaylist,
    exportPlaylist: (options) => exportItems({ items, randomBytes, guides }, options),
    guidesOf: (url, options) => guidesOf(outbound, url, options),
    async close() {
      externalPlaylists.close();
      await tasks.close();
      await store.close();
    },
  };
}
