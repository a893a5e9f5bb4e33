import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { Download, Downloads } from "../../src/downloads/download-contract.ts";
import type { ContentSelector } from "../../src/transfer/contract.ts";
import type { RouteDependencies } from "../http/dependencies.ts";
import { infohashOf } from "./activity.ts";
import { contentParams, contentSelector } from "./content-params.ts";
import { TRANSPORT_FILE_DATA } from "./form.ts";
import { controlMethod, okResult, PRIVATE } from "./method.ts";
import { bool, integer, integerList, required, text } from "./params.ts";

const bytes = z.int().describe("Bytes");

const downloadResult = z.object({
  infohash: z.string(),
  name: z.string(),
  added_at: z.int().describe("UNIX seconds"),
  files: z
    .array(z.array(z.int()).length(2))
    .nullable()
    .describe("The chosen files as ranges of indexes, [first, last]; null: all files"),
  state: z
    .enum(["waiting", "downloading", "complete", "paused", "failed"])
    .describe("waiting: other downloads are fetched first; failed: it is retried after a minute"),
  problem: z.string().nullable(),
  size: bytes.describe("Bytes of the chosen files"),
  held: bytes.describe("Verified bytes of them"),
  download_limit: bytes.describe("Its own limits in bytes per second; 0: none"),
  upload_limit: bytes,
});

const infohashParam = { infohash: required(text).describe("40 hexadecimal digits") };
const rate = (direction: string) =>
  integer.describe(`${direction} limit in bytes per second; 0 or absent: only the limit of all transfers`);

/** Content that the user keeps: fetched whole, and never evicted from the disk cache. */
export const downloadMethods = [
  controlMethod({
    name: "download_list",
    summary: "Lists the downloads: content that is fetched whole and kept in the disk cache",
    isExtra: true,
    ...PRIVATE,
    params: z.object({}),
    result: z.array(downloadResult),
    run: async (_, { dependencies }) => downloadsOf(dependencies).list().map(presentDownload),
  }),
  controlMethod({
    name: "download_add",
    summary:
      "Downloads and keeps content, or changes the chosen files of a download; waits until its files are known",
    isExtra: true,
    ...PRIVATE,
    params: z.object({
      ...contentParams,
      file_indexes: integerList.describe("The files to download; default: all"),
    }),
    files: { [TRANSPORT_FILE_DATA]: 'The transport file itself: POST {"transport_file_data": "<base64>"}' },
    result: downloadResult,
    async run({ file_indexes: files, ...params }, call) {
      const { allowPrivateUrls, signal, dependencies } = call;
      const file = call.files[TRANSPORT_FILE_DATA]?.bytes;
      const selector: ContentSelector | undefined = file
        ? { kind: "transport_file", bytes: file }
        : contentSelector(params, call);
      if (!selector) throw new SluiceError("no_selector", "give one of content_id, infohash, url, magnet");
      const downloads = downloadsOf(dependencies);
      return presentDownload(await downloads.add({ selector, files, allowPrivateUrls, signal }));
    },
  }),
  controlMethod({
    name: "download_pause",
    summary: "Stops fetching a download; what it has is kept",
    isExtra: true,
    ...PRIVATE,
    params: z.object(infohashParam),
    result: downloadResult,
    run: async ({ infohash }, { dependencies }) =>
      presentDownload(await downloadsOf(dependencies).pause(infohashOf(infohash))),
  }),
  controlMethod({
    name: "download_resume",
    summary: "Continues a paused or failed download",
    isExtra: true,
    ...PRIVATE,
    params: z.object(infohashParam),
    result: downloadResult,
    run: async ({ infohash }, { dependencies }) =>
      presentDownload(await downloadsOf(dependencies).resume(infohashOf(infohash))),
  }),
  controlMethod({
    name: "download_delete",
    summary: "Ends a download and deletes its data; players of it stop",
    isExtra: true,
    ...PRIVATE,
    params: z.object({
      ...infohashParam,
      leave_data: bool.describe("1: its data stays in the cache, which evicts it when it needs the space"),
    }),
    result: okResult,
    async run({ infohash, leave_data: leavesData = false }, { dependencies }) {
      await downloadsOf(dependencies).remove(infohashOf(infohash), leavesData);
      return "ok";
    },
  }),
  controlMethod({
    name: "transfer_set_limits",
    summary:
      "Limits the upload and download of one transfer. Limits of a download are stored; others last until the engine stops",
    isExtra: true,
    ...PRIVATE,
    params: z.object({ ...infohashParam, download_limit: rate("Download"), upload_limit: rate("Upload") }),
    result: okResult,
    async run({ infohash, download_limit: download = 0, upload_limit: upload = 0 }, { dependencies }) {
      await downloadsOf(dependencies).limit(infohashOf(infohash), { upload, download });
      return "ok";
    },
  }),
];

function downloadsOf({ downloads }: RouteDependencies): Downloads {
  if (downloads === undefined) throw new SluiceError("access_denied", "downloads are not available here");
  return downloads;
}

/** Converts a download to JSON. */
export function presentDownload(download: Download): z.output<typeof downloadResult> {
  const { infohash, name, addedAt, files, state, problem, size, heldBytes, limits } = download;
  return {
    ...{ infohash, name, state, problem, size },
    added_at: addedAt,
    files: files?.map((range) => [...range]) ?? null,
    held: heldBytes,
    download_limit: limits.download,
    upload_limit: limits.upload,
  };
}
