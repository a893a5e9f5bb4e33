import { addressScope, canonicalAddress, type PeerAddress } from "../base/address.ts";
import { latin1Text, toHex } from "../base/bytes.ts";
import { DecodeError, messageOf, SluiceError } from "../base/errors.ts";
import type { ContentId, Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Runtime } from "../runtime/contract.ts";
import { type Magnet, type MagnetOfInfohash, parseMagnet } from "../wire/magnet.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../wire/metainfo.ts";
import type { ContentSelector, EngineSettings, TransferContent, Transfers } from "./contract.ts";
import { exactSource } from "./exact-source.ts";
import { type FoundManifest, probeUrl } from "./http/probe.ts";
import { type WebContent, webId } from "./http/web-content.ts";
import { type KnownFile, readKnownFile } from "./known-file.ts";
import { watchedContent } from "./live/live-content.ts";

/** Content as a selector named it. */
export interface ResolvedContent {
  readonly content: TransferContent;
  /** The files a magnet selects (`so`, BEP 53), where it does. */
  readonly selectedFiles: readonly number[] | undefined;
  /** The manifest of HLS, where it was asked for and its server was asked just now. */
  readonly manifest?: FoundManifest | undefined;
}

/** Finds out what a selector names. Rejects with `SluiceError`. */
export type ContentResolver = (
  selector: ContentSelector,
  options: ResolveOptions,
) => Promise<ResolvedContent>;

export interface ResolveOptions {
  readonly allowPrivateUrls: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Where the manifest of HLS is wanted too: how long it may be, in bytes. */
  readonly manifestLimitBytes?: number | undefined;
}

interface Parts {
  readonly runtime: Pick<Runtime, "sha1" | "sha256" | "ed25519Verifier" | "lookup" | "randomBytes">;
  readonly transfers: Pick<
    Transfers,
    "get" | "knownTransportFile" | "knownContentId" | "findContent" | "findByKey"
  >;
  readonly outbound: Pick<Outbound, "open">;
  readonly settings: Pick<EngineSettings, "trackers">;
  readonly log: Log;
}

/** Players give up after about 10 s; a URL that takes longer is as good as unreachable. */
const URL_TIMEOUT_MS = 9_000;
/** As many as there may be sessions: older ones belong to players that are long gone. */
const KNOWN_WEB_LIMIT = 256;
/** More peers than this in one link are no help, and each may cost a name lookup. */
const LINK_PEERS_LIMIT = 30;

/** A resolver that looks at home first, then asks the URL's server; peers are asked later, by the transfer. */
export function createContentResolver(parts: Parts): ContentResolver {
  const web = new KnownWeb(parts.runtime);
  return async (selector, options) => {
    switch (selector.kind) {
      case "infohash":
        return (
          web.get(selector.infohash) ??
          here(parts, await parts.transfers.knownTransportFile(selector.infohash), selector.infohash, options)
        );
      case "content_id":
        return byContentId(parts, selector.contentId, options);
      case "magnet":
        return fromMagnet(parts, selector.magnet, options);
      case "url":
        return fromUrl(parts, web, selector.url, options);
      case "transport_file":
        return given(parts, readTransportFile(parts, selector.bytes), options);
    }
  };
}

/** What is known here of content. */
function here(
  parts: Parts,
  known: KnownFile | undefined,
  infohash: Infohash,
  options: ResolveOptions,
): ResolvedContent {
  const content = known ? contentOf(known, options) : { infohash, trackers: [], peers: [] };
  return { content: withTrackers(parts, content), selectedFiles: undefined };
}

/** Content with the trackers that the owner of this engine has set: they are asked where nobody names any, and may be at
 * home whoever names them. */
function withTrackers({ settings }: Parts, content: TransferContent): TransferContent {
  const { transportFile, live, homeTrackers = [] } = content;
  if (settings.trackers.length === 0) return content;
  const isNamed = content.trackers.length > 0 || (live?.file ?? transportFile) !== undefined;
  const trackers = isNamed ? content.trackers : settings.trackers.map((url) => [url]);
  return { ...content, trackers, homeTrackers: [...homeTrackers, ...settings.trackers] };
}

function contentOf(known: KnownFile, options: ResolveOptions): TransferContent {
  if (known.kind === "live") return watchedContent(known.file, options);
  const { file } = known;
  return { infohash: file.infohash, transportFile: file, trackers: [], peers: [] };
}

/** What a transport file describes that the asker has brought. */
function given(parts: Parts, known: KnownFile, options: ResolveOptions): ResolvedContent {
  const homeTrackers = options.allowPrivateUrls ? known.file.trackers.flat() : [];
  const homeWebSeeds =
    options.allowPrivateUrls && known.kind === "vod" ? known.file.webSeeds.map(({ url }) => url) : [];
  const content: TransferContent = { ...contentOf(known, options), homeTrackers, homeWebSeeds };
  const { live } = content;
  if (live && options.allowPrivateUrls)
    return {
      content: withTrackers(parts, { ...content, live: { ...live, mayLeadHome: true } }),
      selectedFiles: undefined,
    };
  return { content: withTrackers(parts, content), selectedFiles: undefined };
}

/**
 * CHOICE(content-id): a content id is the SHA-1 of a transport file we hold. Many deployed links carry an infohash as
 * `id`, so where no transport file has that id, content with that infohash is taken if it is known here. Then peers are asked,
 * but only where the settings name trackers for that: searching a swarm without any would only delay the error.
 */
async function byContentId(
  parts: Parts,
  contentId: ContentId,
  options: ResolveOptions,
): Promise<ResolvedContent> {
  const { transfers } = parts;
  const infohash = (await transfers.knownContentId(contentId)) ?? (contentId as string as Infohash);
  const known = await transfers.knownTransportFile(infohash);
  if (known || transfers.get(infohash)) return here(parts, known, infohash, options);
  const found = await transfers.findContent(contentId, options.signal);
  if (!found)
    throw new SluiceError(
      "content_id_unknown",
      `no transport file with content id ${contentId} is known here`,
    );
  const content = contentOf(found.known, options);
  const withPeers = { ...content, peers: [...content.peers, ...found.peers] };
  return { content: withTrackers(parts, withPeers), selectedFiles: undefined };
}

function readTransportFile(parts: Parts, bytes: Uint8Array): KnownFile {
  if (bytes.length > MAX_TRANSPORT_FILE_BYTES)
    throw new SluiceError(
      "bad_transport_file",
      `a transport file of more than ${MAX_TRANSPORT_FILE_BYTES} bytes`,
    );
  try {
    return readKnownFile(bytes, parts.runtime);
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    const came = whatCame(bytes);
    const what = came === undefined ? thrown.message : `expected a transport file, ${came} came`;
    throw new SluiceError("bad_transport_file", what, { cause: thrown });
  }
}

/** What people give by mistake, in words. */
function whatCame(bytes: Uint8Array): string | undefined {
  const head = latin1Text(bytes.subarray(0, 64)).replace("\u00ef\u00bb\u00bf", "").trimStart();
  if (head === "") return "nothing";
  if (head.startsWith("<")) return "a web page";
  if (head.startsWith("#EXTM3U")) return "a playlist";
  if (head.startsWith("magnet:")) return "a magnet link";
  return undefined;
}

async function fromUrl(
  parts: Parts,
  web: KnownWeb,
  url: string,
  options: ResolveOptions,
): Promise<ResolvedContent> {
  // Links of both kinds are pasted into the same field.
  if (/^magnet:/i.test(url)) return fromMagnet(parts, url, options);
  const probed = await probeUrl(parts.outbound, url, {
    allowPrivate: options.allowPrivateUrls,
    limitBytes: MAX_TRANSPORT_FILE_BYTES,
    manifestLimitBytes: options.manifestLimitBytes,
    timeoutMs: URL_TIMEOUT_MS,
    signal: options.signal,
  });
  if (probed.kind === "web") return { ...web.add(probed.content), manifest: probed.manifest };
  return given(parts, readTransportFile(parts, probed.bytes), options);
}

/** Content of web servers that was opened, by the id it goes by: the URLs of its session lead back to it. */
class KnownWeb {
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
    const infohash = webId(this.#runtime.sha1, this.#secret, web.url, web.allowPrivate);
    const content = { infohash, web, displayName: web.name, trackers: [], peers: [] };
    this.#known.delete(infohash);
    this.#known.set(infohash, { content, selectedFiles: undefined });
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= KNOWN_WEB_LIMIT) break;
      this.#known.delete(oldest);
    }
    return this.get(infohash)!;
  }
}

async function fromMagnet(parts: Parts, text: string, options: ResolveOptions): Promise<ResolvedContent> {
  let magnet: Magnet;
  try {
    magnet = parseMagnet(text);
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    throw new SluiceError("bad_selector", thrown.message, { cause: thrown });
  }
  // Whoever watches goes on with what the key led to at the start.
  const infohash = magnet.infohash ?? (await parts.transfers.findByKey(magnet.item, options.signal));
  const [known, peers] = await Promise.all([
    magnetFile(parts, { ...magnet, infohash }, options),
    linkPeers(parts, magnet, options),
  ]);
  const content: TransferContent = known ? contentOf(known, options) : { infohash, trackers: [], peers: [] };
  const named: TransferContent = {
    ...content,
    // Each tracker is a tier of its own: all of them are asked, as every client does with magnets.
    trackers: magnet.trackers.map((url) => [url]),
    homeTrackers: options.allowPrivateUrls ? magnet.trackers : [],
    webSeeds: magnet.webSeeds.map((url) => ({ url, kind: "files" })),
    homeWebSeeds: options.allowPrivateUrls ? magnet.webSeeds : [],
    peers: [...peers, ...content.peers],
    ...(magnet.displayName !== undefined && { displayName: magnet.displayName }),
  };
  return { content: withTrackers(parts, named), selectedFiles: magnet.selectOnly };
}

/** The transport file of a magnet: kept here, or where the link says that it is. */
async function magnetFile(
  parts: Parts,
  magnet: MagnetOfInfohash,
  options: ResolveOptions,
): Promise<KnownFile | undefined> {
  const known = await parts.transfers.knownTransportFile(magnet.infohash);
  if (known || parts.transfers.get(magnet.infohash)) return known;
  return exactSource(parts, magnet, options);
}

/** The addresses of a magnet's `x.pe`, names looked up; those we may not connect to are left out. */
async function linkPeers(parts: Parts, magnet: Magnet, options: ResolveOptions): Promise<PeerAddress[]> {
  const found = await Promise.all(
    magnet.peers.slice(0, LINK_PEERS_LIMIT).map(async ({ host, port }) => {
      const literal = canonicalAddress(host);
      if (literal !== undefined) return [{ host: literal, port }];
      try {
        return (await parts.runtime.lookup(host)).map((address) => ({ host: address, port }));
      } catch (thrown) {
        parts.log.info("a peer named by the link has no address", { host, reason: messageOf(thrown) });
        return [];
      }
    }),
  );
  return found.flat().filter((peer) => options.allowPrivateUrls || addressScope(peer.host) === "global");
}
