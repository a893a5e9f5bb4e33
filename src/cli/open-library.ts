import { toHex } from "../base/bytes.ts";
import type { Log } from "../base/log.ts";
import { createBroadcastRecords } from "../library/broadcast-records.ts";
import type { BroadcastRecords } from "../library/contract.ts";
import { createLibrary, type Library, type LibraryParts } from "../library/library.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { KeyValueStore, Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings.ts";
import { storePlace } from "./store-place.ts";

/** What is remembered, and by which number this installation is known. */
export interface OpenLibrary {
  readonly library: Library;
  /** 40 hex digits. */
  readonly deviceId: string;
  readonly broadcastRecords: BroadcastRecords;
}

/** Opens the records of this configuration; `broadcasts` are asked by lists of sources. Rejects with `bad_configuration` where another engine has them. */
export async function openLibrary(
  runtime: Runtime,
  config: Config,
  outbound: Outbound,
  log: Log,
  broadcasts: LibraryParts["broadcasts"] & object,
): Promise<OpenLibrary> {
  const place = storePlace(config, log, false);
  const store = await runtime.openStore(place);
  try {
    const deviceId = await deviceIdOf(store, runtime);
    const library = await createLibrary({
      ...runtime,
      store,
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
    return { library, deviceId, broadcastRecords: createBroadcastRecords(store, log) };
  } catch (error) {
    await store.close();
    throw error;
  }
}

const DEVICE_KEY = "meta/device";

/** Made by chance at the first start, so that it says nothing about the machine. */
async function deviceIdOf(store: KeyValueStore, runtime: Runtime): Promise<string> {
  const kept = await store.get(DEVICE_KEY);
  if (typeof kept === "string" && /^[0-9a-f]{40}$/.test(kept)) return kept;
  const made = toHex(runtime.randomBytes(20));
  await store.commit({ set: [[DEVICE_KEY, made]] });
  return made;
}
