import { toHex } from "../base/bytes.ts";
import { DecodeError, SluiceError } from "../base/errors.ts";
import type { ContentId, Infohash } from "../base/ids.ts";
import { type Link, parseLink } from "../base/link.ts";
import { type Magnet, parseMagnet } from "../wire/magnet.ts";
import { plainTitle } from "./analyze-title.ts";
import { analyzeUrl, natureOfFile, type UrlAnalysisParts } from "./analyze-url.ts";
import type { Analysis, InspectOptions, Transfers } from "./contract.ts";
import { type KnownFile, titleOf } from "./known-file.ts";

/** What finding out about links takes. */
export interface AnalysisParts extends UrlAnalysisParts {
  readonly transfers: Pick<Transfers, "get" | "knownTransportFile" | "knownContentId">;
}

/**
 * What a link is: see `Inspector.analyze`.
 *
 * CHOICE(analyze-swarm): a link into a swarm is told by what it says itself and what is known here; no peer is asked.
 * A page that lists fifty links would otherwise join fifty swarms and wait a minute for each dead one.
 */
export async function analyze(
  parts: AnalysisParts,
  query: string,
  title: string | undefined,
  options: InspectOptions,
): Promise<Analysis> {
  const link = parseLink(query);
  if (!link)
    throw new SluiceError("unknown_protocol", `expected a link that can be played, got ${shown(query)}`);
  const found = await analyzeLink(parts, link, options);
  const given = plainTitle(title ?? "");
  return { ...found, title: given || plainTitle(found.title) };
}

async function analyzeLink(parts: AnalysisParts, link: Link, options: InspectOptions): Promise<Analysis> {
  switch (link.kind) {
    case "content_id":
      return byContentId(parts, link.contentId);
    case "infohash":
      return ofSwarm(parts, link.infohash, link.infohash);
    case "magnet":
      return ofMagnet(parts, link.magnet);
    case "url":
      return { ...(await analyzeUrl(parts, link.url, options)), itemUrl: link.url };
  }
}

/** CHOICE(content-id): an id that is no content id known here may be an infohash that is. */
async function byContentId({ transfers }: AnalysisParts, contentId: ContentId): Promise<Analysis> {
  const infohash = (await transfers.knownContentId(contentId)) ?? (contentId as string as Infohash);
  const known = await knownHere(transfers, infohash);
  const name = known ? titleOf(known) : transfers.get(infohash)?.name;
  if (name !== undefined) return swarmAnalysis(known, infohash, name || contentId);
  return { ...swarmAnalysis(undefined, null, contentId), contentId };
}

async function ofSwarm({ transfers }: AnalysisParts, infohash: Infohash, title: string): Promise<Analysis> {
  const known = await knownHere(transfers, infohash);
  return swarmAnalysis(known, infohash, known ? titleOf(known) : transfers.get(infohash)?.name || title);
}

/** The transport file of content that is open, or was. */
async function knownHere(
  transfers: AnalysisParts["transfers"],
  infohash: Infohash,
): Promise<KnownFile | undefined> {
  const live = transfers.get(infohash)?.live;
  return live ? { kind: "live", file: live.content.file } : transfers.knownTransportFile(infohash);
}

function swarmAnalysis(known: KnownFile | undefined, infohash: Infohash | null, title: string): Analysis {
  return {
    contentType: "transport_file",
    transportType: "bt",
    contentId: known?.file.contentId ?? null,
    infohash,
    itemUrl: null,
    title,
    ...natureOfFile(known),
  };
}

/** Where a key leads is not asked: it counts as unknown content. */
function ofMagnet(parts: AnalysisParts, text: string): Promise<Analysis> | Analysis {
  const magnet = readMagnet(text);
  const { infohash, displayName } = magnet;
  return infohash === undefined
    ? swarmAnalysis(undefined, null, displayName ?? toHex(magnet.item.key))
    : ofSwarm(parts, infohash, displayName ?? infohash);
}

function readMagnet(text: string): Magnet {
  try {
    return parseMagnet(text);
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    throw new SluiceError("bad_selector", thrown.message, { cause: thrown });
  }
}

/** A query for a message: its scheme where it has one, since what follows may hold a password. */
function shown(query: string): string {
  const scheme = /^\s*([a-z][a-z0-9+.-]{0,20}:)/i.exec(query)?.[1];
  return scheme ?? `"${plainTitle(query).slice(0, 40)}"`;
}
