import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { ContentId } from "../../src/base/ids.ts";
import type { ContentSelector } from "../../src/transfer/contract.ts";
import { isForeignPage } from "../http/access.ts";
import { contentParams, contentSelector, itemSelector, requireItem } from "./content-params.ts";
import { TRANSPORT_FILE_DATA } from "./form.ts";
import { mediaFilesResult, presentMediaFiles } from "./media-files.ts";
import { type ControlCall, controlMethod, OPEN } from "./method.ts";
import { bool, integer, oneOf, text } from "./params.ts";

/** Files and content ids of content (interface: Service methods). */
export const contentMethods = [
  controlMethod({
    name: "get_media_files",
    summary: "Lists the files of content without playing it",
    ...OPEN,
    params: z.object({
      ...contentParams,
      mode: oneOf(["brief", "full"]).describe("The amount of detail for each file; default full"),
      expand_wrapper: bool.describe("1: the result has wrapper_data for a URL of a web server"),
      dump_transport_file: bool.describe("1: the result includes the transport file as base64"),
      analyze_content: bool.describe("1: the result includes the analysis of the content"),
      create_wrappers: bool.describe("No effect: this engine has no transport files that only wrap a URL"),
    }),
    files: { [TRANSPORT_FILE_DATA]: 'The transport file itself: POST {"transport_file_data": "<base64>"}' },
    result: mediaFilesResult,
    async run(params, call) {
      const bytes = call.files[TRANSPORT_FILE_DATA]?.bytes;
      const selector: ContentSelector | undefined = bytes
        ? { kind: "transport_file", bytes }
        : contentSelector(params, call);
      if (!selector) throw new SluiceError("no_selector", "give one of content_id, infohash, url, magnet");
      const { inspect } = call.dependencies.engine;
      const description = await inspect.describe(selector, inspectOptions(call));
      const query = selector.kind === "url" ? selector.url : `sluice:?infohash=${description.infohash}`;
      const analysis = params.analyze_content
        ? await inspect.analyze(query, description.name, inspectOptions(call))
        : undefined;
      return presentMediaFiles(description, {
        analysis,
        apiVersion: call.apiVersion,
        wrappedUrl: params.expand_wrapper && selector.kind === "url" ? selector.url : undefined,
        isBrief: params.mode === "brief",
        withTransportFile: params.dump_transport_file ?? false,
      });
    },
  }),
  controlMethod({
    name: "get_content_id",
    summary: "Returns the content id of a playlist item, an infohash, or the URL of a transport file",
    ...OPEN,
    params: z.object({
      playlist_item_id: integer.describe("The id of a playlist item; not available to pages of other sites"),
      infohash: text.describe("40 hexadecimal digits"),
      url: text.describe("The URL of a transport file"),
      magnet: text.describe("A magnet link"),
    }),
    result: z.object({ content_id: z.string().describe("40 hexadecimal digits") }),
    async run({ playlist_item_id, ...params }, call) {
      if (playlist_item_id !== undefined) {
        const item = await requireItem(playlist_item_id, call);
        return { content_id: await contentIdOf(itemSelector(item), call) };
      }
      const selector = contentSelector(params, call);
      if (!selector)
        throw new SluiceError("missing_parameter", "give one of playlist_item_id, infohash, url, magnet");
      return { content_id: await contentIdOf(selector, call) };
    },
  }),
];

function contentIdOf(selector: ContentSelector, call: ControlCall): Promise<ContentId> {
  return call.dependencies.engine.inspect.contentIdOf(selector, inspectOptions(call));
}

/** Returns the options of inspections for a call: it ends when the client disconnects, and reaches private URLs only if the client may. */
export function inspectOptions({ allowPrivateUrls, context, dependencies, signal }: ControlCall) {
  return { allowPrivateUrls, isForeign: isForeignPage(context, dependencies), signal };
}
