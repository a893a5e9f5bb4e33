import { join } from "node:path";
import type { BackupContents, RestoreOutcome, RestoreService } from "../../routes/http/dependencies.ts";
import { limitedChunks } from "../../routes/http/request-body.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings/settings.ts";
import { backupText, writeBackupFile } from "./backup.ts";
import { requireSameKey } from "./kept-files.ts";
import { FORMAT_KEY, requireKnownFormat } from "./open-library.ts";
import { backupBytes, restoreFrom, wholeFiles } from "./restore.ts";

/** The uploaded backup, in the data folder. */
const UPLOAD = "uploaded.backup";
/** More than any backup: 100,000 channels take 100 MB, and each of a thousand logos less than 1 MB. */
const MAX_UPLOAD_BYTES = 4 * 1024 ** 3;
/** Time between the request for a restore and the restart, in which the response reaches the client. */
const ANSWER_MS = 200;

/** What counts as one of each kind, by the start of the key of its record. */
const KINDS: readonly (readonly [prefix: string, kind: keyof BackupContents])[] = [
  ["item/", "channels"],
  ["external/", "playlists"],
  ["account/user/", "accounts"],
  ["guide/source/", "guides"],
  ["broadcast/", "broadcasts"],
  ["recording/", "recordings"],
  ["watched/", "watched"],
];

const NOTHING: BackupContents = {
  ...{ channels: 0, playlists: 0, guides: 0, accounts: 0, broadcasts: 0, recordings: 0, watched: 0 },
  ...{ records: 0, files: 0 },
};

/** What {@link RestoreDesk} needs. */
export interface RestoreDeskDependencies {
  readonly runtime: Runtime;
  readonly log: Log;
  /** The settings with which the engine runs. */
  readonly running: () => Config;
  /** Called when a client asks for the restore, for which the engine has to close. */
  readonly onRestart: () => void;
}

/** Takes a backup from a client, and replaces the database with it while the engine is closed. */
export class RestoreDesk implements RestoreService {
  readonly #parts: RestoreDeskDependencies;
  #step: "idle" | "receiving" | "ready" | "asked" = "idle";
  #outcome: RestoreOutcome | undefined;

  constructor(parts: RestoreDeskDependencies) {
    this.#parts = parts;
  }

  get outcome(): RestoreOutcome | undefined {
    return this.#outcome;
  }

  async receive(
    body: AsyncIterable<Uint8Array>,
  ): Promise<{ backup: BackupContents; present: BackupContents }> {
    const { runtime, log, running } = this.#parts;
    const config = running();
    if (config.store !== "sqlite")
      throw new SluiceError(
        "bad_configuration",
        "only a database of this engine alone (sqlite) can be restored",
      );
    if (this.#step === "receiving" || this.#step === "asked")
      throw new SluiceError("too_many", "another backup is being restored; try again when that has ended");
    this.#step = "receiving";
    try {
      await writeBackupFile(runtime, this.#path(), limitedChunks(body, MAX_UPLOAD_BYTES, tooLarge));
      const backup = await this.#contentsOf(backupBytes(runtime, this.#path()));
      const present = await this.#contentsOf(backupText(runtime, config, log));
      this.#step = "ready";
      return { backup, present };
    } catch (error) {
      await this.clear();
      throw error;
    }
  }

  start(): void {
    if (this.#step !== "ready")
      throw new SluiceError("bad_parameter", "no backup is ready to be restored: upload it first");
    this.#step = "asked";
    this.#outcome = undefined;
    setTimeout(this.#parts.onRestart, ANSWER_MS);
  }

  /** Restores the backup if a client has asked for it. The engine is closed; its database stays as it is after an error. */
  async apply(): Promise<void> {
    if (this.#step !== "asked") return;
    const { runtime, log, running } = this.#parts;
    try {
      const { records } = await restoreFrom(runtime, running(), log, this.#path(), true);
      this.#outcome = { records, problem: undefined };
      log.info("restored a backup; the former database is kept as a copy", { records });
    } catch (error) {
      this.#outcome = { records: 0, problem: messageOf(error) };
      log.error("cannot restore the backup; the database is unchanged", { reason: messageOf(error) });
    }
    await this.clear().catch((error: unknown) => {
      log.warn("cannot remove the uploaded backup, which contains keys", {
        path: this.#path(),
        reason: messageOf(error),
      });
    });
  }

  /** Removes the uploaded backup, which contains keys; also one that a killed engine left. */
  async clear(): Promise<void> {
    this.#step = "idle";
    const { files } = this.#parts.runtime;
    for (const path of [this.#path(), `${this.#path()}.part`]) await files.remove(path);
  }

  #path(): string {
    return join(this.#parts.running().dataDir, UPLOAD);
  }

  /** Counts what a backup contains. Rejects if it is damaged, or if `restoreFrom` would refuse it. */
  async #contentsOf(text: AsyncIterable<Uint8Array>): Promise<BackupContents> {
    const { runtime, running } = this.#parts;
    const counts: Record<keyof BackupContents, number> = { ...NOTHING };
    const addFile = wholeFiles(async (name, bytes) => {
      await requireSameKey(runtime.files, running().dataDir, name, bytes);
      counts.files++;
    });
    await runtime.readBackup(text, (line) => {
      if ("name" in line) return addFile(line);
      counts.records++;
      if (line.key === FORMAT_KEY) requireKnownFormat(JSON.parse(line.value));
      const [, kind] = KINDS.find(([prefix]) => line.key.startsWith(prefix)) ?? [];
      if (kind !== undefined) counts[kind]++;
    });
    return counts;
  }
}

function tooLarge(): SluiceError {
  return new SluiceError("too_large", `a backup has at most ${MAX_UPLOAD_BYTES / 1024 ** 3} GiB`);
}
