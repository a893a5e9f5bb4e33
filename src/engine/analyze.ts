import { toHex } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { contentIdOf, type Infohash } from "../base/ids.ts";
import { type Link, parseLink } from "../base/link.ts";
import { type KnownFile, titleOf } from "../storage/known-file.ts";
import type { Analysis, InspectOptions, Transfers } from "../transfer/contract.ts";
import { analyzeUrl, natureOfFile, plainTitle, type UrlAnalysisDependencies } from "./analyze-url.ts";
import { infohashOfId, readMagnet } from "./content.ts";

/** Dependencies of `analyze`. */
export interface AnalysisDependencies extends UrlAnalysisDependencies {
  readonly transfers: Pick<Transfers, "get" | "knownTransportFile" | "infohashOfFile">;
}

/**
 * Implements `Inspector.analyze`.
 *
 * CHOICE(analyze-swarm): the analysis of a swarm link uses the link and stored data only; no peer is asked. A page with
 * fifty links would otherwise join fifty swarms and wait a minute for each dead one.
 */
export async function analyze(
  deps: AnalysisDependencies,
  query: string,
  title: string | undefined,
  options: InspectOptions,
): Promise<Analysis> {
  const link = parseLink(query);
  if (!link) throw new SluiceError("unknown_protocol", `expected a playable link, got ${loggable(query)}`);
  const found = await analyzeLink(deps, link, options);
  return { ...found, title: plainTitle(title ?? "") || plainTitle(found.title) };
}

async function analyzeLink(
  deps: AnalysisDependencies,
  link: Link,
  options: InspectOptions,
): Promise<Analysis> {
  switch (link.kind) {
    case "content_id":
      return ofSwarm(deps, await infohashOfId(deps, link.contentId), link.contentId);
    case "infohash":
      return ofSwarm(deps, link.infohash, link.infohash);
    case "magnet":
      return ofMagnet(deps, link.magnet);
    case "url":
      return { ...(await analyzeUrl(deps, link.url, options)), itemUrl: link.url };
  }
}

async function ofSwarm(
  { transfers }: AnalysisDependencies,
  infohash: Infohash,
  title: string,
): Promise<Analysis> {
  const known = await knownFile(transfers, infohash);
  return swarmAnalysis(known, infohash, known ? titleOf(known) : transfers.get(infohash)?.name || title);
}

/** Returns the transport file of an open live stream, or the stored one. */
async function knownFile(
  transfers: AnalysisDependencies["transfers"],
  infohash: Infohash,
): Promise<KnownFile | undefined> {
  const live = transfers.get(infohash)?.live;
  return live ? { kind: "live", file: live.content.file } : transfers.knownTransportFile(infohash);
}

function swarmAnalysis(known: KnownFile | undefined, infohash: Infohash | null, title: string): Analysis {
  return {
    contentType: "transport_file",
    transportType: "bt",
    contentId: infohash && contentIdOf(infohash),
    infohash,
    itemUrl: null,
    title,
    ...natureOfFile(known),
  };
}

/** A magnet with a key is not resolved: it counts as unknown content. */
function ofMagnet(deps: AnalysisDependencies, text: string): Promise<Analysis> | Analysis {
  const magnet = readMagnet(text);
  const { infohash, displayName } = magnet;
  return infohash === undefined
    ? swarmAnalysis(undefined, null, displayName ?? toHex(magnet.item.key))
    : ofSwarm(deps, infohash, displayName ?? infohash);
}

/** Shortens a query for an error text. Of a URL only the scheme is shown: the rest may contain a password. */
function loggable(query: string): string {
  const scheme = /^\s*([a-z][a-z0-9+.-]{0,20}:)/i.exec(query)?.[1];
  return scheme ?? `"${plainTitle(query).slice(0, 40)}"`;
}
