import { fromHex } from "../../../src/base/bytes.ts";
import type { Random } from "../../../src/base/random.ts";
import { encodeUtf8 } from "../../../src/base/utf8.ts";
import { TunerLineup } from "../../../src/devices/tuner-lineup.ts";
import { TunerRefusal, VirtualTuner } from "../../../src/devices/virtual-tuner.ts";
import { readTunerControl, tunerControlError, tunerControlReply } from "../../../src/wire/tuner/control.ts";
import { isTunerRequest } from "../../../src/wire/tuner/discovery.ts";
import { readTunerFrame, tunerFrame, tunerU32, tunerValue } from "../../../src/wire/tuner/frame.ts";
import type { FuzzTarget } from "../contract.ts";
import { mutateBytes } from "../mutate.ts";

const text = (tag: number, value: string) => tunerValue(tag, encodeUtf8(`${value}\0`));

/** Requests as libhdhomerun sends them. */
const REQUESTS = [
  ["/tuner0/channel", "auto:473000000"],
  ["/tuner0/channel", "8vsb:14"],
  ["/tuner0/channel", "none"],
  ["/tuner0/vchannel", "5.1"],
  ["/tuner0/program", "2"],
  ["/tuner0/target", "rtp://192.168.1.2:5000"],
  ["/tuner0/target", "none"],
  ["/tuner0/filter", "0x0000-0x1fff"],
  ["/tuner0/lockkey", "3735928559"],
  ["/tuner0/lockkey", "force"],
  ["/tuner0/status", undefined],
  ["/tuner0/streaminfo", undefined],
  ["/tuner0/debug", undefined],
  ["/tuner0/vstatus", undefined],
] as const;
const CORPUS = REQUESTS.map(([name, value], i) =>
  tunerFrame(4, [
    text(3, name),
    ...(value === undefined ? [] : [text(4, value)]),
    ...(i % 2 === 0 ? [tunerValue(0x15, tunerU32(0xdeadbeef))] : []),
  ]),
);

/** Changes a payload and writes its length and checksum again, so that the reader sees it. */
function resealed(random: Random, seed: Uint8Array): Uint8Array {
  const frame = readTunerFrame(seed);
  const sources = { corpus: CORPUS, words: [], maxBytes: 1_452 };
  return tunerFrame(frame?.type ?? 4, [mutateBytes(random, frame?.payload ?? seed, sources)]);
}

const lineup = new TunerLineup(
  Array.from({ length: 200 }, (_, i) => ({ id: i + 1, number: `${i}.1`, name: `Channel ${i}` })),
);
const control: FuzzTarget = {
  name: "tuner-control",
  corpus: () => CORPUS,
  mutate: resealed,
  maxBytes: 4_096,
  run(bytes) {
    const frame = readTunerFrame(bytes);
    if (!frame) return undefined;
    const request = readTunerControl(frame);
    const clock = { now: () => 0 as never };
    let host = "";
    const tuner = new VirtualTuner({
      clock,
      send(_, target) {
        host = target.address.host;
        return { bitsPerSecond: 0, packetsPerSecond: 0, stop() {} };
      },
    });
    const client = { host: "192.168.1.2" };
    tuner.handle("vchannel", { name: "", value: "5.1", lockKey: 0 }, client, lineup);
    let reply: Uint8Array;
    try {
      const variable = request.name.replace(/^\/tuner\d+\//, "");
      reply = tunerControlReply(request.name, tuner.handle(variable, request, client, lineup));
    } catch (error) {
      if (!(error instanceof TunerRefusal)) throw error;
      reply = tunerControlError(error.message);
    }
    if (readTunerFrame(reply)?.length !== reply.length) throw new Error("the reply is not a frame");
    if (host !== "" && host !== client.host) throw new Error("a stream to another address");
    return request;
  },
};

const discovery: FuzzTarget = {
  name: "tuner-discovery",
  corpus: () => [fromHex("0002000c0104000000010204ffffffff4e507f35")!],
  mutate: resealed,
  maxBytes: 4_096,
  run: (bytes) => isTunerRequest(bytes, "1012345A"),
};

export const targets = [control, discovery];
