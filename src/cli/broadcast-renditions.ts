import { resolve } from "node:path";
import { SluiceError } from "../base/errors.ts";
import type { BroadcastOptions } from "../library/contract.ts";
import type { BroadcastRequest, RenditionRequest } from "../live/broadcast/broadcast-contract.ts";
import { readLivePlace } from "../live/input/source-place.ts";
import { parseBitRate } from "./units.ts";

/** The smallest and largest picture, and the least and greatest rate in bits per second, that are encoded. */
const LINES = { min: 96, max: 4320 };
const BITS = { min: 200_000, max: 100_000_000 };

/** Returns the qualities that the user asked for. Throws `bad_parameter`. */
export function renditionsOf({
  renditions,
  variants = [],
  programmes,
}: Pick<BroadcastOptions, "renditions" | "variants" | "programmes">): Pick<
  BroadcastRequest,
  "programme" | "renditions"
> {
  const [programme, ...others] = programmes ? numbersOf(programmes) : [];
  const all: RenditionRequest[] = [
    ...others.map((number) => ({ kind: "programme", number }) as const),
    ...variants.map((source) => ({ kind: "source", place: sourceOf(source) }) as const),
    ...(renditions?.split(",") ?? []).map(encodedOf),
  ];
  return { ...(programme !== undefined && { programme }), ...(all.length > 0 && { renditions: all }) };
}

/** Parses `720p:3M`: lines of the picture, and bits per second of picture and sound together. */
function encodedOf(text: string): RenditionRequest {
  const match = /^(\d{2,4})p:(.+)$/i.exec(text.trim());
  const height = Number(match?.[1]);
  const bitsPerSecond = (match && parseBitRate(match[2]!)) ?? 0;
  const isSize = height >= LINES.min && height <= LINES.max && height % 2 === 0;
  if (isSize && bitsPerSecond >= BITS.min && bitsPerSecond <= BITS.max)
    return { kind: "encoded", height, bitsPerSecond };
  throw new SluiceError(
    "bad_parameter",
    `renditions: expected lines and bits a second, ${LINES.min}p to ${LINES.max}p and 200k to 100M, such as 720p:3M,480p:1M, got "${text.slice(0, 60)}"`,
  );
}

function sourceOf(text: string) {
  const place = readLivePlace(text);
  if (place.kind === "pipe")
    throw new SluiceError("bad_parameter", "variant: standard input carries one stream; name another source");
  return place.kind === "file" ? { ...place, path: resolve(place.path) } : place;
}

function numbersOf(text: string): number[] {
  const numbers = text.split(",").map((each) => (/^\s*\d{1,5}\s*$/.test(each) ? Number(each) : 0));
  if (numbers.every((number) => number >= 1 && number <= 0xffff)) return numbers;
  throw new SluiceError(
    "bad_parameter",
    `programmes: expected programme numbers such as 1,2, got "${text.slice(0, 60)}"; ffprobe lists them`,
  );
}
