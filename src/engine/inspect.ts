import { SluiceError } from "../base/errors.ts";
import { contentIdOf } from "../base/ids.ts";
import { liveFiles } from "../live/live-content.ts";
import type { Access } from "../playback/access.ts";
import { awaitFiles } from "../playback/timeouts.ts";
import { type KnownFile, titleOf } from "../storage/known-file.ts";
import type {
  ContentDescription,
  ContentFile,
  ContentSelector,
  InspectOptions,
  Inspector,
  TransferContent,
  Transfers,
  WebContent,
} from "../transfer/contract.ts";
import { contentFiles } from "../transfer/known-content.ts";
import type { FoundManifest } from "../web-content/probe.ts";
import type { LiveTransportFile } from "../wire/live/transport-file.ts";
import { type AnalysisDependencies, analyze } from "./analyze.ts";
import { hlsNature, MANIFEST_LIMIT_BYTES, natureOf } from "./analyze-hls.ts";
import { KeptNames } from "./kept-names.ts";
import { WebLookup } from "./web-lookup.ts";

/** Dependencies of the inspector. */
interface InspectorDependencies extends Omit<AnalysisDependencies, "readTransportFile" | "transfers"> {
  readonly access: Access;
  readonly transfers: Transfers;
}

/** Creates the inspector of the engine. */
export function createInspector(deps: InspectorDependencies): Inspector {
  const { transfers, access } = deps;
  const readTransportFile = async (bytes: Uint8Array) => {
    const selector = { kind: "transport_file", bytes } as const;
    return fileOf((await access.resolve(selector, { allowPrivateUrls: false })).content)!;
  };
  const names = new KeptNames(deps.clock, transfers);
  const analysis: AnalysisDependencies = { ...deps, readTransportFile };
  const describe = (selector: ContentSelector, options: InspectOptions) =>
    describeContent(deps, selector, options);
  return {
    describe,
    async keep(bytes) {
      const file = await readTransportFile(bytes);
      await transfers.keep(file);
      return describeFile(file);
    },
    async contentIdOf(selector, options) {
      const { content } = await access.resolve(selector, options);
      if (!content.web) return contentIdOf(content.infohash);
      throw new SluiceError(
        "content_id_unknown",
        "content of a web server has no content id: other engines open its URL",
      );
    },
    analyze: (query, title, options) => analyze(analysis, query, title, options),
    search: (text, limit) => names.search(text, limit),
  };
}

async function describeContent(
  deps: InspectorDependencies,
  selector: ContentSelector,
  options: InspectOptions,
): Promise<ContentDescription> {
  // Created first, so that its time-out covers resolving as well.
  const lookup = new WebLookup(deps, options);
  const resolveOptions = { ...options, manifestLimitBytes: MANIFEST_LIMIT_BYTES };
  const { content, manifest } = await deps.access.resolve(selector, resolveOptions);
  if (content.web) return describeWeb(lookup, content, content.web, manifest);
  const known = fileOf(content);
  if (known) return describeFile(known);
  const { transfer, release } = deps.access.holds.open(content, options.isForeign);
  try {
    await awaitFiles(deps.access, transfer, options);
    const { name, infohash, files, live, channel } = transfer;
    if (live) return describeFile({ kind: "live", file: live.content.file });
    if (channel)
      return {
        ...{ type: "live", name, infohash, files, transportType: "wrapper" },
        ...{ contentId: undefined, transportFile: undefined },
      };
    const contentId = contentIdOf(infohash);
    const file = transfer.transportFile();
    return { type: "vod", name, infohash, contentId, files, transportType: "bt", transportFile: file?.bytes };
  } finally {
    release();
  }
}

function fileOf({ live, transportFile }: TransferContent): KnownFile | undefined {
  if (live) return { kind: "live", file: live.file };
  return transportFile && { kind: "vod", file: transportFile };
}

function describeFile(known: KnownFile): ContentDescription {
  const { infohash, bytes } = known.file;
  return {
    type: known.kind,
    name: titleOf(known),
    infohash,
    contentId: contentIdOf(infohash),
    files: known.kind === "live" ? describedLive(known.file) : contentFiles(known.file.info),
    transportType: "bt",
    transportFile: bytes,
  };
}

/** A live stream has no end; its size is that of the window in which viewers can seek. */
function describedLive(file: LiveTransportFile): ContentFile[] {
  const size = file.info.bytesPerSecond * file.info.windowSeconds;
  return liveFiles(file).map((each) => ({ ...each, size }));
}

async function describeWeb(
  lookup: WebLookup,
  { infohash }: TransferContent,
  { url, kind, name, mime, size, allowPrivate }: WebContent,
  manifest: FoundManifest | undefined,
): Promise<ContentDescription> {
  const nature = () =>
    manifest
      ? natureOf(lookup, manifest)
      : lookup.request(url, "HLS manifest", (answer) => hlsNature(lookup, answer), { allowPrivate });
  const isLive = kind === "hls" ? (await nature()).isLive === 1 : kind === "stream";
  return {
    name,
    infohash,
    contentId: undefined,
    type: isLive ? "live" : "vod",
    transportType: kind === "hls" ? "hls" : "wrapper",
    files: [{ index: 0, name, size, offset: 0, mime, isPlayable: true }],
    transportFile: undefined,
  };
}
