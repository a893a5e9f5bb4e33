import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { ContentId } from "../../src/base/ids.ts";
import type { ContentSelector } from "../../src/engine/contract.ts";
import { contentParams, contentSelector, itemSelector, knownItem } from "./content-params.ts";
import { mediaFilesResult, presentMediaFiles } from "./media-files.ts";
import { type ControlCall, controlMethod } from "./method.ts";
import { bool, file, integer, oneOf, text } from "./params.ts";

const open = { isPublic: true, isRemote: true, isOpenToPages: true } as const;

/** What content is made of, and what it is called (interface: Service methods). */
export const contentMethods = [
  controlMethod({
    name: "get_media_files",
    summary: "The files of content, without playing it",
    ...open,
    params: z.object({
      ...contentParams,
      transport_file_data: file.describe(
        'The transport file itself: POST {"transport_file_data": "<base64>"}',
      ),
      mode: oneOf(["brief", "full"]).describe("How much is told of each file; full where it is absent"),
      expand_wrapper: bool.describe("Accepted; nothing depends on it"),
      dump_transport_file: bool.describe("Add the transport file, as base64"),
      analyze_content: bool.describe("Accepted; nothing depends on it"),
      create_wrappers: bool.describe("Accepted; nothing depends on it"),
    }),
    result: mediaFilesResult,
    async run(params, call) {
      const bytes = params.transport_file_data?.bytes;
      const selector: ContentSelector | undefined = bytes
        ? { kind: "transport_file", bytes }
        : contentSelector(params, call);
      if (!selector) throw new SluiceError("no_selector", "give one of content_id, infohash, url, magnet");
      const { inspect } = call.house.engine;
      const description = await inspect.describe(selector, inspectOptions(call));
      return presentMediaFiles(description, {
        apiVersion: call.apiVersion,
        isBrief: params.mode === "brief",
        withTransportFile: params.dump_transport_file ?? false,
      });
    },
  }),
  controlMethod({
    name: "get_content_id",
    summary: "The content id of an item, an infohash, or a transport file's URL",
    ...open,
    params: z.object({
      playlist_item_id: integer.describe("An item of the playlist; not told to pages of other sites"),
      infohash: text.describe("40 hexadecimal digits"),
      url: text.describe("The URL of a transport file"),
      magnet: text.describe("A magnet link"),
    }),
    result: z.object({ content_id: z.string().describe("40 hexadecimal digits") }),
    async run({ playlist_item_id, ...params }, call) {
      if (playlist_item_id !== undefined) {
        const item = await knownItem(playlist_item_id, call);
        return { content_id: item.content.contentId ?? (await contentIdOf(itemSelector(item), call)) };
      }
      const selector = contentSelector(params, call);
      if (!selector)
        throw new SluiceError("missing_parameter", "give one of playlist_item_id, infohash, url, magnet");
      return { content_id: await contentIdOf(selector, call) };
    },
  }),
];

async function contentIdOf(selector: ContentSelector, call: ControlCall): Promise<ContentId> {
  const { inspect } = call.house.engine;
  if (selector.kind === "content_id") return selector.contentId;
  if (selector.kind === "infohash") return inspect.contentIdOf(selector.infohash, inspectOptions(call));
  const { contentId, infohash } = await inspect.describe(selector, inspectOptions(call));
  return contentId ?? inspect.contentIdOf(infohash, inspectOptions(call));
}

/** How a call lets the engine look: no further than its asker could reach, and no longer than he waits. */
export function inspectOptions({ allowPrivateUrls, signal }: ControlCall) {
  return { allowPrivateUrls, signal };
}
