import { HonoRequest } from "hono/request";
import type { z } from "zod";
import { CONTROL_SECTIONS } from "../../../routes/control/control.ts";
import { parameterError } from "../../../routes/control/params.ts";
import { searchParams } from "../../../routes/control/search.ts";
import { playbackParams, selectorOf } from "../../../routes/http/params.ts";
import { exportParams } from "../../../routes/playlist-export.ts";
import { concatBytes, latin1Bytes } from "../../../src/base/bytes.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";

const METHODS = CONTROL_SECTIONS.flatMap(({ methods }) => methods);

/** All query parsers; the first byte of an input selects one. */
const SCHEMAS: readonly z.ZodType[] = [
  playbackParams,
  exportParams,
  searchParams,
  ...METHODS.map(({ params }) => params),
];

const HASH = "de2fb17b7a45e455815ca4894197bf45e75ee01f";
const QUERIES = [
  `content_id=${HASH}&format=json&pid=a&_idx=1&preferred_audio_language=eng`,
  `magnet=magnet:?xt=urn:btih:${HASH}&dn=a+b&tr=udp://t.example:80&infohash=`,
  "method=playlist_get&api_version=3&owner=_no_owner_&offset=0&limit=25&sort=1&is_favorite=1&category=tv",
  "id=1&value=true&use_media_groups=0&ids=1,2,3&playlist_item_id=4&playlist_item_id=5,6&task_id=7",
  "title=%D0%9F%D0%B5%D1%80%D0%B2%D1%8B%D0%B9&tags=%5B%22a%22%2C%22b%22%5D&is_live=-1&auto_search=1&infohash=&url=http://x/",
  "type=content&category=&name=a&url=http%3A%2F%2Fu%3Ap%40x%2Fl.m3u&update_interval=3600&update_now=0&login=l&password=p",
  "query=a&query=b&query=&page=0&page_size=200&group_by_channels=1&mode=full&player_id=-1&file_index=0",
  "host=[::1]:6878&protocol=hls&items=1,2&download=1&email=a@b.c&password=%00&google_token=x.y.z",
  "&&&=&=a&%&%zz&__proto__=1&constructor=2&a[]=1&.mp4&id=x&id",
];

export const target: FuzzTarget = {
  name: "query",
  corpus: () =>
    SCHEMAS.flatMap((_, i) =>
      QUERIES.slice(i % 2, 8).map((query) => concatBytes([new Uint8Array([i]), latin1Bytes(query)])),
    ),
  extremes: () =>
    ["&", "&id=1", "&ids=1,1", "1,", "&tags=[[", "%5b", "&query=a", "%", "+", "&magnet=&tr=a"].map((unit) =>
      repeated("\x05ids=1,", unit),
    ),
  words: [
    "&",
    "=",
    "%00",
    "%5b",
    "id=",
    "value=",
    "ids=",
    "tags=",
    "-1",
    "1e9",
    "\n",
    "%ff",
    "query=",
    "%2c",
    "__proto__=",
  ].map(latin1Bytes),
  maxBytes: 8192,
  run(bytes) {
    const url = new URL("http://x/server/api");
    url.search = new TextDecoder().decode(bytes.subarray(1));
    const parameters = new HonoRequest(new Request(url)).queries();
    const schema = SCHEMAS[(bytes[0] ?? 0) % SCHEMAS.length]!;
    const read = schema.safeParse(parameters);
    if (!read.success) throw parameterError(read.error);
    return schema === playbackParams
      ? selectorOf(read.data as z.output<typeof playbackParams>, url.searchParams)
      : read.data;
  },
};
