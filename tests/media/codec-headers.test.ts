import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHex } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import {
  adtsPrefix,
  adtsProblem,
  parseAacConfig,
  readAdtsHeader,
  setAdtsLength,
} from "../../src/media/aac.ts";
import { readAc3Header } from "../../src/media/ac3.ts";
import { dtsExtensionBytes, dtsFrameSamples, readMpegAudioHeader } from "../../src/media/audio-headers.ts";
import { parseAvcConfig, parseH264Sps } from "../../src/media/h264.ts";
import { annexBNals, unescapeNal, withStartCodes } from "../../src/media/nal.ts";
import { AVCC, PPS, SPS } from "../remux/synthetic-ts.ts";

const bytes = (hex: string) => fromHex(hex.replaceAll(" ", ""))!;

test("parseH264Sps reads the picture size and the codec string", () => {
  const sps = parseH264Sps(SPS);
  assert.equal(sps.codecString, "avc1.64000c");
  assert.deepEqual([sps.width, sps.height], [320, 180]);
});

test("parseAvcConfig reads the parameter sets, and rejects a truncated one", () => {
  assert.deepEqual(parseAvcConfig(AVCC), { lengthSize: 4, sps: [SPS], pps: [PPS] });
  assert.throws(() => parseAvcConfig(AVCC.subarray(0, 12)), DecodeError);
});

test("annexBNals finds units after three- and four-byte start codes", () => {
  const stream = bytes("00000001 67aa 000001 68bb00 00000001 65cc");
  assert.deepEqual(
    annexBNals(stream).map(({ start, end }) => [start, end]),
    [
      [4, 6],
      [9, 11],
      [16, 18],
    ],
  );
  assert.deepEqual(annexBNals(withStartCodes([SPS, PPS])).length, 2);
});

test("unescapeNal removes emulation prevention bytes only", () => {
  assert.deepEqual(unescapeNal(bytes("00000301 000003 03000300")), bytes("000001 0000 03000300"));
});

test("parseAacConfig reads AAC-LC, HE-AAC, explicit rates", () => {
  const plain = parseAacConfig(bytes("1190"));
  assert.deepEqual(
    [plain.objectType, plain.sampleRate, plain.channelConfig, plain.extension],
    [2, 48000, 2, undefined],
  );
  assert.equal(plain.codecString, "mp4a.40.2");
  const he = parseAacConfig(bytes("2b118800"));
  assert.deepEqual([he.objectType, he.sampleRate, he.extension, he.codecString], [2, 24000, 5, "mp4a.40.5"]);
  const explicit = parseAacConfig(bytes("1780 5dc0 10")); // index 15, then 24 bits of 48000
  assert.deepEqual([explicit.objectType, explicit.sampleRate], [2, 48000]);
});

test("adtsPrefix and setAdtsLength write a header that readAdtsHeader reads", () => {
  const prefix = adtsPrefix(parseAacConfig(bytes("1210")));
  setAdtsLength(prefix, 0, 1234);
  const header = readAdtsHeader(prefix, 0);
  assert.deepEqual(header, {
    objectType: 2,
    sampleRate: 44100,
    channelConfig: 2,
    headerBytes: 7,
    frameBytes: 1234,
    samples: 1024,
  });
});

test("adtsPrefix includes the program config element if the channel configuration is 0", () => {
  // 5.1 channels as elements: front pair and centre, back pair, LFE.
  const config = parseAacConfig(bytes("1180 04c8 4400 2000 c40c 4c61 7663 3539 2e33 372e 3130 3056 e500"));
  assert.equal(config.channelConfig, 0);
  const prefix = adtsPrefix(config);
  assert.equal(prefix[7]! >> 5, 5);
  assert.equal(adtsProblem(config), undefined);
});

test("adtsProblem names an object type that ADTS cannot carry", () => {
  assert.match(adtsProblem(parseAacConfig(bytes("f94690")))!, /object type 4\d/);
});

test("readMpegAudioHeader distinguishes layer II from layer III", () => {
  const mp3 = readMpegAudioHeader(bytes("fffb9064"), 0)!;
  assert.deepEqual([mp3.layer, mp3.sampleRate, mp3.frameBytes, mp3.samples], [3, 44100, 417, 1152]);
  const mp2 = readMpegAudioHeader(bytes("fffda404"), 0)!;
  assert.deepEqual([mp2.layer, mp2.sampleRate, mp2.frameBytes], [2, 48000, 576]);
  assert.equal(readMpegAudioHeader(bytes("fffff064"), 0), undefined);
});

test("readAc3Header distinguishes AC-3 from E-AC-3", () => {
  const ac3 = readAc3Header(bytes("0b77aaaa1440 43ff"), 0)!;
  assert.deepEqual([ac3.codec, ac3.sampleRate, ac3.frameBytes], ["ac3", 48000, 768]);
  const eac3 = readAc3Header(bytes("0b7702ff3487 e000"), 0)!;
  assert.deepEqual([eac3.codec, eac3.sampleRate, eac3.frameBytes, eac3.samples], ["eac3", 48000, 1536, 1536]);
});

test("dtsExtensionBytes reads both forms of the size of an extension substream", () => {
  assert.equal(dtsExtensionBytes(bytes("64582025 00 01 e0 07 e0 00"), 0), 64);
  assert.equal(dtsExtensionBytes(bytes("00 64582025 00 22 58 00 03 e0"), 1), 32);
  assert.equal(dtsExtensionBytes(bytes("7ffe8001 fc 3c 3f f0 b6 c0"), 0), 0);
  assert.equal(dtsExtensionBytes(bytes("64582025 00 0f"), 0), 0);
});

test("dtsFrameSamples reads the size of a core frame, and refuses other bytes", () => {
  assert.equal(dtsFrameSamples(bytes("7ffe8001 fc3c 3ff0 b6c0")), 512);
  assert.equal(dtsFrameSamples(bytes("7ffe8001 fdfc 3ff0 b6c0")), 4096);
  assert.equal(dtsFrameSamples(bytes("64582025 fc3c")), undefined);
  assert.equal(dtsFrameSamples(bytes("7ffe8001 fc")), undefined);
});
