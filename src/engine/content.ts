import { addressScope, canonicalAddress, type PeerAddress } from "../base/address.ts";
import { latin1Text, toHex } from "../base/bytes.ts";
import { DecodeError, messageOf, SluiceError } from "../base/errors.ts";
import {
  type ContentId,
  type FileHash,
  type Infohash,
  infohashOf,
  infohashOfContentId,
  type Sha1,
} from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { watchedContent } from "../live/live-content.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { ContentResolver, ResolvedContent, ResolveOptions } from "../playback/contract.ts";
import type { Runtime } from "../runtime/contract.ts";
import { type KnownFile, readKnownFile } from "../storage/known-file.ts";
import type {
  ContentSelector,
  EngineSettings,
  TransferContent,
  Transfers,
  WebContent,
} from "../transfer/contract.ts";
import { probeUrl } from "../web-content/probe.ts";
import { type Magnet, type MagnetOfInfohash, parseMagnet } from "../wire/torrent/magnet.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../wire/torrent/metainfo.ts";
import { exactSource } from "./exact-source.ts";

interface Dependencies {
  readonly runtime: Pick<Runtime, "sha1" | "sha256" | "ed25519Verifier" | "lookup" | "randomBytes">;
  readonly transfers: Pick<Transfers, "get" | "knownTransportFile" | "infohashOfFile" | "findByKey">;
  readonly outbound: Pick<Outbound, "open">;
  readonly settings: Pick<EngineSettings, "trackers">;
  readonly log: Log;
}

/** Players give up after about 10 s, so a slower URL counts as unreachable. */
const URL_TIMEOUT_MS = 9_000;
/** The default session limit: the players of older entries have left. */
const MAX_OPENED_WEB_CONTENT = 256;
/** More peers in a link do not help, and each may cost a DNS lookup. */
const MAX_LINK_PEERS = 30;

/**
 * Creates the resolver of content selectors. It looks in the stored transport files first, then asks the web server of a
 * URL, and asks the DHT only for a key. The metadata of an infohash is fetched later, by the transfer.
 */
export function createContentResolver(deps: Dependencies): ContentResolver {
  const web = new OpenedWebContent(deps.runtime);
  return async (selector, options) => {
    switch (selector.kind) {
      case "infohash":
        return byInfohash(deps, web, selector.infohash);
      case "content_id":
        return byInfohash(deps, web, await infohashOfId(deps, selector.contentId));
      case "magnet":
        return fromMagnet(deps, selector.magnet, options, selector.isOwn);
      case "url":
        return fromUrl(deps, web, selector, options);
      case "transport_file":
        return fromTransportFile(deps, readTransportFile(deps, selector.bytes), options);
    }
  };
}

/** Adds the trackers from the settings: they are used if the content names none, and may be at private addresses even if
 * the content names them. */
function withTrackers(
  { settings }: Dependencies,
  content: TransferContent,
  selectedFiles?: readonly number[],
): ResolvedContent {
  const { transportFile, live, localTrackers = [] } = content;
  if (settings.trackers.length === 0) return { content, selectedFiles };
  const isNamed = content.trackers.length > 0 || (live?.file ?? transportFile) !== undefined;
  const trackers = isNamed ? content.trackers : settings.trackers.map((url) => [url]);
  const allLocal = [...localTrackers, ...settings.trackers];
  return { content: { ...content, trackers, localTrackers: allLocal }, selectedFiles };
}

/**
 * Returns content from its transport file, or from the infohash alone if `known` is undefined. `allowPrivateUrls` depends on the
 * origin of the file. The origin of a stored file is not recorded, and a peer may send any file: both count as the Internet.
 */
function contentOf(
  infohash: Infohash,
  known: KnownFile | undefined,
  { allowPrivateUrls } = { allowPrivateUrls: false },
): TransferContent {
  if (known?.kind === "live") return watchedContent(known.file, { allowPrivateUrls });
  return { infohash, ...(known && { transportFile: known.file }), trackers: [], peers: [] };
}

async function byInfohash(
  deps: Dependencies,
  web: OpenedWebContent,
  infohash: Infohash,
): Promise<ResolvedContent> {
  const opened = web.get(infohash);
  if (opened) return opened;
  const known = await deps.transfers.knownTransportFile(infohash);
  return withTrackers(deps, contentOf(infohash, known));
}

/** Returns the content of a transport file. `allowPrivateUrls`: the file comes from a client or server that may name private
 * addresses. */
function fromTransportFile(
  deps: Dependencies,
  known: KnownFile,
  options: Pick<ResolveOptions, "allowPrivateUrls">,
): ResolvedContent {
  const localTrackers = options.allowPrivateUrls ? known.file.trackers.flat() : [];
  const localWebSeeds =
    options.allowPrivateUrls && known.kind === "vod" ? known.file.webSeeds.map(({ url }) => url) : [];
  const content: TransferContent = {
    ...contentOf(known.file.infohash, known, options),
    localTrackers,
    localWebSeeds,
  };
  const { live } = content;
  const allowed =
    live && options.allowPrivateUrls ? { ...content, live: { ...live, allowPrivate: true } } : content;
  return withTrackers(deps, allowed);
}

/**
 * CHOICE(content-id): the content id of files and live streams is their infohash, so every engine derives the same id, and
 * finds the content without another lookup. Earlier versions used the SHA-1 of the transport file: such an id works if that
 * file is stored.
 */
export async function infohashOfId(
  { transfers }: { readonly transfers: Pick<Transfers, "infohashOfFile"> },
  contentId: ContentId,
): Promise<Infohash> {
  return (await transfers.infohashOfFile(contentId as string as FileHash)) ?? infohashOfContentId(contentId);
}

function readTransportFile(deps: Dependencies, bytes: Uint8Array): KnownFile {
  if (bytes.length > MAX_TRANSPORT_FILE_BYTES)
    throw new SluiceError(
      "bad_transport_file",
      `the transport file is larger than ${MAX_TRANSPORT_FILE_BYTES} bytes`,
    );
  try {
    return readKnownFile(bytes, deps.runtime);
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    const mistake = knownMistake(bytes);
    const what = mistake === undefined ? thrown.message : `expected a transport file, got ${mistake}`;
    throw new SluiceError("bad_transport_file", what, { cause: thrown });
  }
}

/** Names what users often supply instead of a transport file; undefined if it is none of these. */
function knownMistake(bytes: Uint8Array): string | undefined {
  const head = latin1Text(bytes.subarray(0, 64)).replace("\u00ef\u00bb\u00bf", "").trimStart();
  if (head === "") return "an empty file";
  if (head.startsWith("<")) return "a web page";
  if (head.startsWith("#EXTM3U")) return "a playlist";
  if (head.startsWith("magnet:")) return "a magnet link";
  return undefined;
}

async function fromUrl(
  deps: Dependencies,
  web: OpenedWebContent,
  { url, headers }: ContentSelector & { kind: "url" },
  options: ResolveOptions,
): Promise<ResolvedContent> {
  // Users paste URLs and magnet links into the same field.
  if (/^magnet:/i.test(url)) return fromMagnet(deps, url, options);
  const probed = await probeUrl(deps.outbound, url, {
    allowPrivate: options.allowPrivateUrls,
    headers,
    limitBytes: MAX_TRANSPORT_FILE_BYTES,
    manifestLimitBytes: options.manifestLimitBytes,
    timeoutMs: URL_TIMEOUT_MS,
    signal: options.signal,
  });
  if (probed.kind === "web") return { ...web.add(probed.content), manifest: probed.manifest };
  // A public server must not lead to private addresses, even for a client that may name them.
  return fromTransportFile(deps, readTransportFile(deps, probed.bytes), {
    allowPrivateUrls: probed.allowPrivate,
  });
}

/** Recently opened content of web servers, by its id: URLs of a session contain only that id. */
class OpenedWebContent {
  readonly #runtime: Pick<Runtime, "sha1">;
  readonly #secret: string;
  readonly #known = new Map<Infohash, ResolvedContent>();

  constructor(runtime: Pick<Runtime, "sha1" | "randomBytes">) {
    this.#runtime = runtime;
    this.#secret = toHex(runtime.randomBytes(16));
  }

  get(infohash: Infohash): ResolvedContent | undefined {
    return this.#known.get(infohash);
  }

  add(web: WebContent): ResolvedContent {
    const infohash = webContentId(this.#runtime.sha1, this.#secret, web);
    const content = { infohash, web, displayName: web.name, trackers: [], peers: [] };
    this.#known.delete(infohash);
    this.#known.set(infohash, { content, selectedFiles: undefined });
    trimOldest(this.#known, MAX_OPENED_WEB_CONTENT);
    return this.get(infohash)!;
  }
}

/**
 * CHOICE(web-id): web content has no infohash, so the SHA-1 of its URL takes that place. If the URL may lead to a private
 * address, or a playlist sets headers for it, a secret of this run is hashed too: a client that may not open such a URL, or
 * does not know the headers, must not guess its id.
 */
function webContentId(sha1: Sha1, secret: string, { url, headers, allowPrivate }: WebContent): Infohash {
  const { href } = new URL(url);
  const parts = [
    ...(allowPrivate || headers ? [secret] : []),
    href,
    ...(headers ? [JSON.stringify(headers)] : []),
  ];
  return infohashOf(sha1(encodeUtf8(parts.join(" "))));
}

async function fromMagnet(
  deps: Dependencies,
  text: string,
  options: ResolveOptions,
  isOwn = false,
): Promise<ResolvedContent> {
  const magnet = readMagnet(text);
  // Playback continues with this infohash even if the record of the key changes later.
  const infohash = magnet.infohash ?? (await deps.transfers.findByKey(magnet.item, options.signal));
  const [fetched, peers] = await Promise.all([
    magnetFile(deps, { ...magnet, infohash }, options),
    linkPeers(deps, magnet, options.allowPrivateUrls || isOwn),
  ]);
  const content = contentOf(infohash, fetched?.known, fetched);
  const named: TransferContent = {
    ...content,
    // Each tracker of a magnet is its own tier, so all of them are announced to, as in other clients.
    trackers: magnet.trackers.map((url) => [url]),
    localTrackers: options.allowPrivateUrls ? magnet.trackers : [],
    webSeeds: magnet.webSeeds.map((url) => ({ url, kind: "files" })),
    localWebSeeds: options.allowPrivateUrls ? magnet.webSeeds : [],
    peers: [...peers, ...content.peers],
    ...(magnet.displayName !== undefined && { displayName: magnet.displayName }),
  };
  return withTrackers(deps, named, magnet.selectOnly);
}

/** Parses a magnet link. Throws `bad_selector`. */
export function readMagnet(text: string): Magnet {
  try {
    return parseMagnet(text);
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    throw new SluiceError("bad_selector", thrown.message, { cause: thrown });
  }
}

/** Returns the transport file of a magnet: the stored one, or the one at its `xs` URL. */
async function magnetFile(
  deps: Dependencies,
  magnet: MagnetOfInfohash,
  options: ResolveOptions,
): ReturnType<typeof exactSource> {
  const known = await deps.transfers.knownTransportFile(magnet.infohash);
  if (known) return { known, allowPrivateUrls: false };
  if (deps.transfers.get(magnet.infohash)) return undefined;
  return exactSource(deps, magnet, options);
}

/** Resolves the `x.pe` peers of a magnet to addresses. Private addresses are dropped unless the caller may use them. */
async function linkPeers(deps: Dependencies, magnet: Magnet, allowPrivate: boolean): Promise<PeerAddress[]> {
  const found = await Promise.all(
    magnet.peers.slice(0, MAX_LINK_PEERS).map(async ({ host, port }) => {
      const literal = canonicalAddress(host);
      if (literal !== undefined) return [{ host: literal, port }];
      try {
        return (await deps.runtime.lookup(host)).map((address) => ({ host: address, port }));
      } catch (thrown) {
        deps.log.info("cannot resolve a peer of the magnet link", { host, reason: messageOf(thrown) });
        return [];
      }
    }),
  );
  return found.flat().filter((peer) => allowPrivate || addressScope(peer.host) === "global");
}
