import { SluiceError } from "../../src/base/errors.ts";
import type { ContentId, Infohash } from "../../src/base/ids.ts";
import type {
  Analysis,
  ContentDescription,
  ContentSelector,
  InspectOptions,
  Inspector,
} from "../../src/transfer/contract.ts";

export const INFOHASH = "1".repeat(40) as Infohash;
export const CONTENT_ID = "2".repeat(40) as ContentId;

/** The content of the fake: a film, its sample, and a text file. */
export const DESCRIPTION: ContentDescription = {
  name: "Film",
  infohash: INFOHASH,
  contentId: CONTENT_ID,
  type: "vod",
  transportType: "bt",
  files: [
    { index: 0, name: "Film/readme.txt", size: 9000, offset: 0, mime: "text/plain", isPlayable: false },
    { index: 1, name: "Film/sample.mkv", size: 10, offset: 9000, mime: "video/x-matroska", isPlayable: true },
    { index: 2, name: "Film/film.mp4", size: 1000, offset: 9010, mime: "video/mp4", isPlayable: true },
  ],
  transportFile: new Uint8Array([0, 1, 254, 255]),
};

const ANALYSIS: Analysis = {
  contentType: "transport_file",
  transportType: "bt",
  contentId: CONTENT_ID,
  infohash: INFOHASH,
  itemUrl: null,
  title: "Film",
  isLive: 0,
  categories: ["movies"],
};

/** An inspector that knows one film by each selector, and records its calls. */
export function fakeInspector() {
  const asked: { what: unknown; options: InspectOptions }[] = [];
  const counts = { now: 0, most: 0 };
  const inspect: Inspector = {
    async describe(selector, options) {
      asked.push({ what: selector, options });
      if (knows(selector)) return DESCRIPTION;
      throw new SluiceError("no_peers", "no peers");
    },
    keep: async () => DESCRIPTION,
    async contentIdOf(selector, options) {
      asked.push({ what: selector, options });
      if (knows(selector)) return CONTENT_ID;
      throw new SluiceError("content_id_unknown", "no transport file found");
    },
    async analyze(query, title, options) {
      asked.push({ what: query, options });
      counts.most = Math.max(counts.most, ++counts.now);
      await new Promise((resolve) => setImmediate(resolve));
      counts.now--;
      if (!/^(sluice:|http)/.test(query)) throw new SluiceError("unknown_protocol", "no link");
      if (query.startsWith("http"))
        return { ...ANALYSIS, contentType: "hls", transportType: "hls", isLive: 1, itemUrl: query };
      return { ...ANALYSIS, title: title ?? ANALYSIS.title };
    },
    search: async () => [],
  };
  return { inspect, asked, counts };
}

function knows(selector: ContentSelector): boolean {
  if (selector.kind === "infohash") return selector.infohash === INFOHASH;
  if (selector.kind === "content_id") return selector.contentId === CONTENT_ID;
  return selector.kind !== "url" || selector.url.endsWith("film.torrent");
}
