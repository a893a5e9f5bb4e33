import { messageOf, SluiceError } from "../../base/errors.ts";
import { parseHttpUrl } from "../../base/http-url.ts";
import type { Log } from "../../base/log.ts";
import { type M3uEntry, M3uReader } from "../../media/m3u.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Broadcast, BroadcastRequest, Broadcasts } from "./broadcast-contract.ts";
import { broadcastNameFrom } from "./broadcast-name.ts";
import { MAX_BROADCASTS } from "./broadcasts.ts";
import { readLivePlace } from "./source-place.ts";

/** A list of sources on the web. */
export interface BroadcastList {
  readonly id: number;
  readonly url: string;
  /** Empty where there is none. */
  readonly login: string;
  readonly password: string;
  /** Whether its URL may lead to this host and its network. */
  readonly allowPrivateUrls: boolean;
}

/** Makes what is broadcast what lists of sources say. */
export interface BroadcastLists {
  /** Fetches a list, starts what is new in it and stops what left it. Tells what was done; rejects with `SluiceError`. */
  refresh(
    list: BroadcastList,
    progress: {
      report(done: number, total: number | null, unit: string): void;
      readonly signal: AbortSignal;
    },
  ): Promise<string>;
  /** The list is no more: stops what came from it. */
  forget(id: number): Promise<void>;
}

/** What lists need. */
export interface BroadcastListsParts {
  readonly broadcasts: Broadcasts;
  readonly outbound: Pick<Outbound, "open">;
  readonly log: Log;
  /** What no list says: the announce URLs, and our own addresses. */
  defaults(): Pick<BroadcastRequest, "trackers" | "addresses">;
}

/** A list of some thousand entries; of those {@link MAX_BROADCASTS} are taken. */
const MAX_LIST_BYTES = 1024 * 1024;
const TIMEOUT_MS = 60_000;
const HEAD_TIMEOUT_MS = 15_000;

interface OnAir {
  readonly url: string;
  readonly broadcast: Broadcast;
}

/** Lists of sources, each entry a broadcast of its own. */
export function createBroadcastLists(parts: BroadcastListsParts): BroadcastLists {
  /** By list, by name. */
  const onAir = new Map<number, Map<string, OnAir>>();
  const stopped = async (ofList: Map<string, OnAir>, names: readonly string[]) => {
    await Promise.all(names.map((name) => ofList.get(name)!.broadcast.stop()));
    for (const name of names) ofList.delete(name);
  };

  return {
    async refresh(list, { report, signal }) {
      const { wanted, leftOut } = await fetchList(parts, list, signal);
      const ofList = onAir.get(list.id) ?? new Map<string, OnAir>();
      onAir.set(list.id, ofList);
      const gone = [...ofList].filter(([name, { url }]) => wanted.get(name)?.place.url !== url);
      await stopped(
        ofList,
        gone.map(([name]) => name),
      );
      const fresh = [...wanted].filter(([name]) => !ofList.has(name));
      const problems: string[] = [];
      let done = 0;
      await Promise.all(
        fresh.map(async ([name, request]) => {
          try {
            const broadcast = await parts.broadcasts.start(request, signal);
            ofList.set(name, { url: request.place.url, broadcast });
            const forget = () => {
              if (ofList.get(name)?.broadcast === broadcast) ofList.delete(name);
            };
            broadcast.ended.then(forget, forget);
          } catch (thrown) {
            problems.push(`${name}: ${messageOf(thrown)}`);
            parts.log.warn("a source of a list cannot be broadcast", { name, reason: messageOf(thrown) });
          }
          report(++done, fresh.length, "broadcasts");
        }),
      );
      signal.throwIfAborted();
      if (problems.length > 0 && ofList.size === 0) throw new SluiceError("url_unreachable", problems[0]!);
      const failed = problems.length === 0 ? "" : `; ${problems.length} cannot be broadcast (${problems[0]})`;
      const left = leftOut === 0 ? "" : `; ${leftOut} entries left out`;
      return `${ofList.size} on air${failed}${left}`;
    },
    async forget(id) {
      const ofList = onAir.get(id);
      if (!ofList) return;
      await stopped(ofList, [...ofList.keys()]);
      onAir.delete(id);
    },
  };
}

/** A request whose source is on the web. */
type WebRequest = BroadcastRequest & { readonly place: { readonly url: string } };

async function fetchList(
  parts: BroadcastListsParts,
  list: BroadcastList,
  signal: AbortSignal,
): Promise<{ readonly wanted: ReadonlyMap<string, WebRequest>; readonly leftOut: number }> {
  const { login, password } = list;
  const answer = await parts.outbound.open(list.url, {
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
    answer.body.cancel().catch(() => {}); // It is given up either way.
    throw new SluiceError("url_unreachable", `the list of sources answered with status ${answer.status}`);
  }
  const reader = new M3uReader();
  const entries: M3uEntry[] = [];
  for await (const bytes of answer.body) entries.push(...reader.push(bytes));
  entries.push(...reader.end());
  if (reader.kind === "hls")
    throw new SluiceError("not_a_playlist", "expected a list of sources, not the manifest of one stream");
  const wanted = new Map<string, WebRequest>();
  let leftOut = reader.skipped;
  for (const entry of entries) {
    const request = requestOf(list.id, entry, answer.allowPrivate ?? false, parts.defaults());
    if (!request || wanted.size === MAX_BROADCASTS || wanted.has(request.name)) leftOut++;
    else wanted.set(request.name, request);
  }
  return { wanted, leftOut };
}

/** What an entry asks for; undefined where its source is none on the web: a list shall not open files and ports here. */
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
    // With the list's number, so that no list can go on with a stream that is the user's own, or another list's.
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
