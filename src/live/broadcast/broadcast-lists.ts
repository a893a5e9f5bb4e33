import { messageOf, SluiceError } from "../../base/errors.ts";
import { parseHttpUrl } from "../../base/http-url.ts";
import type { Log } from "../../base/log.ts";
import { type M3uEntry, M3uReader } from "../../media/m3u.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import { readLivePlace } from "../input/source-place.ts";
import type { Broadcast, BroadcastRequest, Broadcasts } from "./broadcast-contract.ts";
import { broadcastNameFrom } from "./broadcast-name.ts";
import { MAX_BROADCASTS } from "./broadcasts.ts";

/** A list of sources on the web. */
export interface BroadcastList {
  readonly id: number;
  readonly url: string;
  /** Empty if the list needs no login. */
  readonly login: string;
  readonly password: string;
  /** Whether the URL may lead to this machine and its network. */
  readonly allowPrivateUrls: boolean;
}

/** Broadcasts the entries of lists of sources. */
export interface BroadcastLists {
  /** Fetches a list, starts its new entries and stops removed ones. Resolves with a summary; rejects with
   * `SluiceError`. */
  refresh(
    list: BroadcastList,
    progress: {
      report(done: number, total: number | null, unit: string): void;
      readonly signal: AbortSignal;
    },
  ): Promise<string>;
  /** Stops the broadcasts of a removed list. */
  forget(id: number): Promise<void>;
}

/** What the lists depend on. */
export interface BroadcastListsDependencies {
  readonly broadcasts: Broadcasts;
  readonly outbound: Pick<Outbound, "open">;
  readonly log: Log;
  /** Returns what a list does not contain: the announce URLs and our own addresses. */
  defaults(): Pick<BroadcastRequest, "trackers" | "addresses">;
}

/** Some thousand entries; at most {@link MAX_BROADCASTS} of them are used. */
const MAX_LIST_BYTES = 1024 * 1024;
const TIMEOUT_MS = 60_000;
const HEAD_TIMEOUT_MS = 15_000;

interface OnAir {
  readonly url: string;
  readonly broadcast: Broadcast;
}

/** Creates the manager of lists of sources; each entry is one broadcast. */
export function createBroadcastLists(dependencies: BroadcastListsDependencies): BroadcastLists {
  /** By list id, then by name. */
  const onAir = new Map<number, Map<string, OnAir>>();
  const stopAll = async (broadcasts: Map<string, OnAir>, names: readonly string[]) => {
    await Promise.all(names.map((name) => broadcasts.get(name)!.broadcast.stop()));
    for (const name of names) broadcasts.delete(name);
  };

  return {
    async refresh(list, { report, signal }) {
      const { wanted, leftOut } = await fetchList(dependencies, list, signal);
      const broadcasts = onAir.get(list.id) ?? new Map<string, OnAir>();
      onAir.set(list.id, broadcasts);
      const gone = [...broadcasts].filter(([name, { url }]) => wanted.get(name)?.place.url !== url);
      await stopAll(
        broadcasts,
        gone.map(([name]) => name),
      );
      const fresh = [...wanted].filter(([name]) => !broadcasts.has(name));
      const problems: string[] = [];
      let done = 0;
      await Promise.all(
        fresh.map(async ([name, request]) => {
          try {
            const broadcast = await dependencies.broadcasts.start(request, signal);
            broadcasts.set(name, { url: request.place.url, broadcast });
            const remove = () => {
              if (broadcasts.get(name)?.broadcast === broadcast) broadcasts.delete(name);
            };
            broadcast.ended.then(remove, remove);
          } catch (thrown) {
            problems.push(`${name}: ${messageOf(thrown)}`);
            dependencies.log.warn("cannot broadcast a source of a list", { name, reason: messageOf(thrown) });
          }
          report(++done, fresh.length, "broadcasts");
        }),
      );
      signal.throwIfAborted();
      if (problems.length > 0 && broadcasts.size === 0)
        throw new SluiceError("url_unreachable", problems[0]!);
      const failed = problems.length === 0 ? "" : `; ${problems.length} failed (${problems[0]})`;
      const left = leftOut === 0 ? "" : `; ${leftOut} entries skipped`;
      return `${broadcasts.size} on air${failed}${left}`;
    },
    async forget(id) {
      const broadcasts = onAir.get(id);
      if (!broadcasts) return;
      await stopAll(broadcasts, [...broadcasts.keys()]);
      onAir.delete(id);
    },
  };
}

/** A request whose source is a URL. */
type WebRequest = BroadcastRequest & { readonly place: { readonly url: string } };

async function fetchList(
  dependencies: BroadcastListsDependencies,
  list: BroadcastList,
  signal: AbortSignal,
): Promise<{ readonly wanted: ReadonlyMap<string, WebRequest>; readonly leftOut: number }> {
  const { login, password } = list;
  const answer = await dependencies.outbound.open(list.url, {
    limitBytes: MAX_LIST_BYTES,
    allowPrivate: list.allowPrivateUrls,
    ...(login !== "" && { basic: { login, password } }),
    headTimeoutMs: HEAD_TIMEOUT_MS,
    idleTimeoutMs: HEAD_TIMEOUT_MS,
    timeoutMs: TIMEOUT_MS,
    purpose: "list of sources",
    signal,
  });
  if (answer.status !== 200) {
    answer.body.cancel().catch(() => {}); // The response is discarded anyway.
    throw new SluiceError(
      "url_unreachable",
      `the server of the source list answered with status ${answer.status}`,
    );
  }
  const reader = new M3uReader();
  const entries: M3uEntry[] = [];
  for await (const bytes of answer.body) entries.push(...reader.push(bytes));
  entries.push(...reader.end());
  if (reader.kind === "hls")
    throw new SluiceError(
      "not_a_playlist",
      "expected a list of sources, but this is the HLS manifest of one stream",
    );
  const wanted = new Map<string, WebRequest>();
  let leftOut = reader.skipped;
  for (const entry of entries) {
    const request = requestOf(list.id, entry, answer.allowPrivate ?? false, dependencies.defaults());
    if (!request || wanted.size === MAX_BROADCASTS || wanted.has(request.name)) leftOut++;
    else wanted.set(request.name, request);
  }
  return { wanted, leftOut };
}

/** Returns the request of an entry; undefined if its source is not a URL: a list must not open local files or ports. */
function requestOf(
  listId: number,
  { title, url, attributes, group }: M3uEntry,
  allowPrivate: boolean,
  defaults: Pick<BroadcastRequest, "trackers" | "addresses">,
): WebRequest | undefined {
  const href = parseHttpUrl(url)?.href;
  const place = href === undefined ? undefined : readLivePlace(href);
  if (place?.kind !== "http" && place?.kind !== "hls") return undefined;
  const logo = parseHttpUrl(attributes.get("tvg-logo") ?? "")?.href;
  return {
    // The list id keeps lists from continuing the user's own streams, or those of other lists.
    name: broadcastNameFrom(`list ${listId} ${title || new URL(place.url).hostname}`),
    place,
    isLooped: false,
    allowPrivateUrls: allowPrivate,
    meta: {
      ...(title !== "" && { title: title.slice(0, 256) }),
      ...(logo !== undefined && { logo }),
      ...(group !== undefined && group !== "" && { categories: [group.slice(0, 256)] }),
    },
    trackers: defaults.trackers,
    relays: [],
    isPrivate: false,
    uploadLimit: undefined,
    bytesPerSecond: undefined,
    manifests: [],
    addresses: defaults.addresses,
  };
}
