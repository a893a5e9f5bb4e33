import type { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { BroadcastWish } from "../../src/library/contract.ts";
import { bool, integer, text, texts } from "./params.ts";

/** What `broadcast_start` takes: the words of the command line. */
export const broadcastParams = {
  source: text.describe(
    "An http or https URL, udp://address:port, or the absolute path of a file of MPEG-TS",
  ),
  test_pattern: bool.describe("1 in place of a source: a moving picture with a clock"),
  name: text.describe(
    "Whose key is used: the same name is the same stream; told by the source where it is absent",
  ),
  title: text.describe("What viewers see; the name where it is absent"),
  description: text,
  category: texts.describe("May be given again, as all lists here"),
  language: texts.describe("Three letters, such as eng"),
  country: texts.describe("Two letters, such as us"),
  logo: text.describe("The URL of a picture"),
  tracker: texts.describe("Announce URLs"),
  relay: texts.describe("host:port of relays, named to viewers"),
  private: bool.describe("1: the relays alone are served"),
  upload_limit: integer.describe("Bytes a second to all peers together; 0 for no limit"),
  bitrate: integer.describe("Bits a second that the stream needs at most; measured where it is absent"),
  loop: bool.describe("1: a file begins again at its end"),
  standby: bool.describe("1: on air only while nobody else is with the same key, which must be here already"),
  hls: texts.describe(
    "HLS manifests (or a plain MPEG-TS) of the same stream, for viewers whose peers are too late",
  ),
  address: texts.describe("host:port at which others reach this engine, put into the link"),
} as const;

type Params = { readonly [Name in keyof typeof broadcastParams]?: z.output<(typeof broadcastParams)[Name]> };

/** What is wished; a name that is not given is empty. Throws `missing_parameter`, `bad_parameter`. */
export function wishOf(params: Params): BroadcastWish {
  const { source, test_pattern: isPattern = false } = params;
  if (isPattern && source !== undefined)
    throw new SluiceError("bad_parameter", "test_pattern: it is a source itself; leave out source");
  if (!isPattern && source === undefined)
    throw new SluiceError(
      "missing_parameter",
      "source: expected a URL, udp://… or a file; or test_pattern=1",
    );
  return {
    name: params.name ?? "",
    source: source ?? null,
    isLooped: params.loop ?? false,
    ...(params.standby && { isStandby: true }),
    title: params.title ?? null,
    description: params.description ?? null,
    categories: params.category ?? [],
    languages: params.language ?? [],
    countries: params.country ?? [],
    logo: params.logo ?? null,
    trackers: params.tracker ?? [],
    relays: params.relay ?? [],
    isPrivate: params.private ?? false,
    uploadLimit: positive("upload_limit", params.upload_limit),
    bitsPerSecond: positive("bitrate", params.bitrate),
    manifests: params.hls ?? [],
    addresses: params.address ?? [],
  };
}

function positive(name: string, value: number | undefined): number | null {
  if (value === undefined || value === 0) return null;
  if (value > 0) return value;
  throw new SluiceError("bad_parameter", `${name}: expected a number above 0, got ${value}`);
}
