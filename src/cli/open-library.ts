import { toHex } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { createCatchUp } from "../catch-up/catch-up.ts";
import type { OpenChannel } from "../catch-up/channel-keeper.ts";
import { type EngineCluster, openCluster } from "../cluster/engine-cluster.ts";
import { openScope } from "../cluster/engine-scope.ts";
import { DownloadRecords } from "../downloads/download-records.ts";
import { createBroadcastRecords } from "../library/broadcast-records.ts";
import type { BroadcastRecords } from "../library/contract.ts";
import { createLibrary, type Library, type LibraryDependencies } from "../library/library.ts";
import { createRelayRecords, type RelayRecords } from "../library/relay-records.ts";
import type { Outbound } from "../outbound/outbound.ts";
import { createRecordings, type RecordingsDependencies } from "../recordings/recordings.ts";
import type { OpenMedia } from "../remux/contract.ts";
import type { KeyValueStore, Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings/settings.ts";
import { VERSION } from "../settings/version.ts";
import { type MeasuredStore, measuredStore } from "./measured-store.ts";
import { MIGRATION_KEY, storeOptions } from "./store.ts";

/** The library, and the id of this installation. */
export interface OpenLibrary {
  readonly library: Library;
  readonly store: MeasuredStore;
  /** 40 hex digits. */
  readonly deviceId: string;
  /** The engines that share the store; undefined if it is a store of this engine alone. */
  readonly cluster: EngineCluster | undefined;
  readonly broadcastRecords: BroadcastRecords;
  readonly relayRecords: RelayRecords;
  readonly downloadRecords: DownloadRecords;
  /** Opens the recordings and the kept channels, which are played by `open`. Browsers get recordings by `openMedia`, peers those that are shared by `sharing`. */
  openChannelMedia(
    open: OpenChannel,
    openMedia: OpenMedia,
    sharing: Pick<RecordingsDependencies, "share" | "peerAddresses">,
  ): Promise<ChannelMedia>;
}

/** Media of channels that the engine writes to its disk. */
interface ChannelMedia {
  readonly recordings: Awaited<ReturnType<typeof createRecordings>>;
  /** Undefined if catch-up is off. */
  readonly catchUp: Awaited<ReturnType<typeof createCatchUp>> | undefined;
}

/** Opens the database and its library. Rejects with `bad_configuration` if another engine uses a database that engines cannot share, and if
 * a newer version wrote its records. */
export async function openLibrary(
  runtime: Runtime,
  config: Config,
  outbound: Outbound,
  log: Log,
  broadcasts: LibraryDependencies["broadcasts"] & object,
): Promise<OpenLibrary> {
  const place = storeOptions(config, log, false);
  const store = measuredStore(await runtime.openStore(place), runtime.clock);
  try {
    if ((await store.get(MIGRATION_KEY)) !== undefined)
      throw new SluiceError(
        "bad_configuration",
        "the migration to this store is not complete: run the same `sluice migrate` again",
      );
    await checkFormat(store);
    const { randomBytes, files } = runtime;
    const scope = store.watch && (await openScope({ store, files, folder: place.folder, randomBytes }));
    const ownStore = scope?.store ?? store;
    const deviceId = await deviceIdOf(ownStore, runtime);
    const cluster =
      scope &&
      (await openCluster({
        ...{ store, clock: runtime.clock, version: VERSION, log: log.named("cluster") },
        id: `${scope.engineId}-${toHex(randomBytes(4))}`,
        address: config.clusterAddress,
      }));
    const library = await createLibrary({
      ...runtime,
      ...(cluster && { leases: cluster }),
      store,
      ownStore,
      folder: place.folder,
      outbound,
      broadcasts,
      random: Math.random,
      log,
      google: {
        issuer: config.googleIssuer,
        audience: config.googleAudience,
        keysUrl: config.googleKeysUrl,
      },
      ...(config.accessToken !== "" && { fixedToken: config.accessToken }),
    });
    const recording = { ...runtime, store: ownStore, folder: place.folder, items: library.items };
    return {
      library,
      ...{ store, deviceId, cluster, relayRecords: createRelayRecords(ownStore, log) },
      broadcastRecords: createBroadcastRecords(ownStore, log),
      downloadRecords: await DownloadRecords.load(ownStore, log),
      async openChannelMedia(open, openMedia, sharing) {
        const catchUp =
          config.catchUp === 0
            ? undefined
            : await createCatchUp({
                ...{ ...recording, open, unixMs: Date.now, log: log.named("catch-up") },
                windowMs: Math.min(config.catchUp, MAX_CATCH_UP_MS),
                limitBytes: config.catchUpLimit,
              });
        const recordings = await createRecordings({
          ...{ ...recording, ...sharing, open, openMedia, catchUp, guide: library },
          log: log.named("recordings"),
          limitBytes: config.recordingsLimit,
        });
        return { recordings, catchUp };
      },
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Guides have the programmes of the past week. */
const MAX_CATCH_UP_MS = 7 * 86_400_000;

/** The record with the form of all records. */
export const FORMAT_KEY = "meta/format";
/** The form of the records. A version that changes it raises the number, and converts older records here. */
const FORMAT = 1;

/** Records their form. Throws `bad_configuration` if a newer version has written them: this one would misread them. */
async function checkFormat(store: KeyValueStore): Promise<void> {
  const found = await store.get(FORMAT_KEY);
  if (found === FORMAT) return;
  requireKnownFormat(found);
  await store.commit({ check: [[FORMAT_KEY, found]], set: [[FORMAT_KEY, FORMAT]] });
}

/** Throws `bad_configuration` if a newer version has written the records with this value of `FORMAT_KEY`. */
export function requireKnownFormat(found: unknown): void {
  if (typeof found === "number" && found > FORMAT)
    throw new SluiceError(
      "bad_configuration",
      `the records were written by a newer Sluice (format ${found}, supported: ${FORMAT}); use that version`,
    );
}

const DEVICE_KEY = "meta/device";

/** Returns the id, generated at the first start; it is random so that it reveals nothing about the machine. */
async function deviceIdOf(store: KeyValueStore, runtime: Runtime): Promise<string> {
  const kept = await store.get(DEVICE_KEY);
  if (typeof kept === "string" && /^[0-9a-f]{40}$/.test(kept)) return kept;
  const made = toHex(runtime.randomBytes(20));
  await store.commit({ set: [[DEVICE_KEY, made]] });
  return made;
}
