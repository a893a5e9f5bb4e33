import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { type EngineProcess, startEngine, startSession } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { makeMedia } from "../remux/make-media.ts";
import { checkTimestamps, decodesSilently, frameHashes, packetCounts } from "./judges.ts";
import { type MediaServer, slidingManifest, startMediaServer } from "./media-server.ts";

const { after, before, describe, test } = await testsThatNeed("ffmpeg");

const SECONDS = 12;
const VIDEO = "-c:v libx264 -preset ultrafast -bf 2 -g 25 -keyint_min 25 -sc_threshold 0 -pix_fmt yuv420p";

/** A picture and two tones, one of which is louder on the left; the first is English, the second German. */
const SOURCE = [
  ..."-f lavfi -i".split(" "),
  `testsrc2=size=320x180:rate=25:duration=${SECONDS}`,
  ..."-f lavfi -i".split(" "),
  `sine=frequency=440:sample_rate=48000:duration=${SECONDS}`,
  ..."-f lavfi -i".split(" "),
  `sine=frequency=880:sample_rate=44100:duration=${SECONDS}`,
  ..."-map 0 -map 1 -map 2".split(" "),
  ...VIDEO.split(" "),
  ..."-c:a aac -metadata:s:a:0 language=eng -metadata:s:a:1 language=deu".split(" "),
];

describe("HLS of other servers with separate audio playlists", { timeout: 600_000 }, () => {
  let scratch: TempFolder;
  let server: MediaServer;
  let engine: EngineProcess;
  let source: string;
  const file = (name: string) => scratch.file(name);
  const played = (path: string, name: string, query: Record<string, string> = {}) =>
    `${engine.url}/ace/${path}?${new URLSearchParams({ url: `${server.url}/${name}`, ...query })}`;

  before(async () => {
    scratch = await tempFolder("url-split-hls");
    await mkdir(scratch.path, { recursive: true });
    source = await makeMedia("two-sounds.mkv", SOURCE);
    await makeSplit(source, scratch.path, "ts", "mpegts");
    await makeSplit(source, scratch.path, "mp4", "fmp4");
    await makePacked(source, scratch.path);
    const live = ["ts_0.m3u8", "ts_1.m3u8", "ts_2.m3u8"];
    const windows: Record<string, () => string> = {};
    for (const name of live) windows[name] = slidingManifest(await readFile(file(name), "utf8"), 5);
    await writeFile(
      file("live.m3u8"),
      (await readFile(file("ts.m3u8"), "utf8")).replaceAll(/ts_(\d)\.m3u8/g, "live_$1.m3u8"),
    );
    server = await startMediaServer(
      scratch.path,
      Object.fromEntries(
        live.map((name) => [`/${name.replace("ts_", "live_")}`, (_, to) => void to.end(windows[name]!())]),
      ),
    );
    engine = await startEngine();
  });
  after(async () => {
    await engine?.stop();
    await server?.close();
    await scratch?.remove();
  });

  /** The packets of the picture and of the sounds. */
  const counts = async (...sounds: number[]) => {
    const all = await streamsOf(source);
    return [all[0]!, ...sounds.map((index) => all[index]!)].map(([codec, n]) => `${codec} ${n}`).sort();
  };

  for (const name of ["ts", "mp4"]) {
    test(`${name}: as HLS, a master with both sounds: every packet, the source's pictures, silent decoders`, async () => {
      const url = played("manifest.m3u8", `${name}.m3u8`, { preferred_audio_language: "ger" });
      assert.deepEqual(await packetCounts(url), await counts(1, 2));
      assert.deepEqual(await frameHashes(url), await frameHashes(source));
      await decodesSilently(url);
      const master = await (await fetch(url)).text();
      const sounds = master.split("\n").filter((line) => line.includes("TYPE=AUDIO"));
      assert.match(sounds[0]!, /LANGUAGE="de[u]?",DEFAULT=YES/);
      assert.match(sounds[1]!, /LANGUAGE="en[g]?",DEFAULT=NO/);
    });
  }

  for (const [language, index, pitch] of [
    ["eng", 1, 48000],
    ["ger", 2, 44100],
  ] as const) {
    for (const name of ["ts", "packed"]) {
      test(`${name}: as one transport stream in ${language}: every packet, in order, decoded in silence`, async () => {
        const url = played("getstream", `${name}.m3u8`, { preferred_audio_language: language });
        assert.deepEqual(await packetCounts(url), await counts(index));
        assert.deepEqual(await frameHashes(url), await frameHashes(source));
        assert.ok((await checkTimestamps(url)) > 500);
        await decodesSilently(url);
        assert.equal(await sampleRate(url), pitch);
        assert.ok(
          (await apartSeconds(url)) < 0.1,
          `picture and sound are ${await apartSeconds(url)} s apart`,
        );
      });
    }
  }

  test("packed: as HLS, sound without a container comes as MPEG-TS", async () => {
    const url = played("manifest.m3u8", "packed.m3u8");
    assert.deepEqual(await packetCounts(url), await counts(1, 2));
    await decodesSilently(url);
  });

  test("live: as HLS and as one transport stream, from near the edge to the end, with its sound", async () => {
    const pictures = await frameHashes(source);
    for (const path of ["manifest.m3u8", "getstream"]) {
      const hashes = await frameHashes(played(path, "live.m3u8", { pid: path }));
      assert.ok(hashes.length >= 75, `${path}: ${hashes.length}`);
      assert.deepEqual(hashes, pictures.slice(-hashes.length), path);
    }
  });

  test("fragmented MP4 with separate sound is refused as one transport stream, with a readable error", async () => {
    const refused = await fetch(played("getstream", "mp4.m3u8"));
    assert.equal(refused.status, 415);
    assert.match(await refused.text(), /fragmented MP4/);
  });

  test("stat lists the forms of a stream, and stream_id and quality choose one", async () => {
    await writeFile(
      file("forms.m3u8"),
      [
        "#EXTM3U",
        '#EXT-X-STREAM-INF:BANDWIDTH=4000000,AVERAGE-BANDWIDTH=2000000,CODECS="avc1.64001f,mp4a.40.2",RESOLUTION=1280x720',
        "ts_0.m3u8",
        '#EXT-X-STREAM-INF:BANDWIDTH=800000,CODECS="avc1.64001f,mp4a.40.2",RESOLUTION=640x360',
        "ts_1.m3u8",
        "",
      ].join("\n"),
    );
    const url = `${server.url}/forms.m3u8`;
    const chosen = async (query: Record<string, string>) => {
      const { stat_url } = await startSession(engine, "manifest.m3u8", { url, ...query });
      const { response } = (await (await fetch(stat_url)).json()) as { response: Record<string, unknown> };
      return response;
    };
    const first = await chosen({});
    assert.equal(first.selected_stream_index, 0);
    assert.deepEqual(first.hls_streams, [
      {
        ...{ name: "720p", quality: 720, bitrate: 250_000, bandwidth: 4_000_000, type: "video" },
        ...{ codecs: "avc1.64001f,mp4a.40.2", resolution: "1280x720" },
      },
      {
        ...{ name: "360p", quality: 360, bitrate: 100_000, bandwidth: 800_000, type: "video" },
        ...{ codecs: "avc1.64001f,mp4a.40.2", resolution: "640x360" },
      },
    ]);
    assert.equal((await chosen({ quality: "480" })).selected_stream_index, 1);
    assert.equal((await chosen({ stream_id: "1" })).selected_stream_index, 1);
    assert.equal((await chosen({ stream_id: "-1" })).selected_stream_index, 0);
    const wrong = await fetch(played("getstream", "forms.m3u8", { stream_id: "2" }));
    assert.equal(wrong.status, 400);
    assert.match(await wrong.text(), /stream_id: expected at most 1, got 2/);
  });
});

/** A master, `<name>.m3u8`, of `<name>_0.m3u8` (picture), `_1` and `_2` (sound). */
async function makeSplit(source: string, folder: string, name: string, kind: string): Promise<void> {
  await run("ffmpeg", [
    ...["-v", "error", "-y", "-i", source, ..."-map 0 -c copy -f hls -hls_time 1".split(" ")],
    ...["-hls_playlist_type", "vod", "-hls_segment_type", kind],
    ...(kind === "fmp4" ? ["-hls_fmp4_init_filename", `${name}_init_%v.mp4`] : []),
    ...["-hls_segment_filename", `${folder}/${name}_%v_%d.${kind === "fmp4" ? "m4s" : "ts"}`],
    "-var_stream_map",
    "v:0,agroup:s a:0,agroup:s,language:eng,default:yes a:1,agroup:s,language:deu",
    `${folder}/${name}_%v.m3u8`,
  ]);
  // ffmpeg's own master leaves out a variant whose bitrate it does not know.
  await writeFile(
    `${folder}/${name}.m3u8`,
    [
      "#EXTM3U",
      `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="s",NAME="one",LANGUAGE="eng",DEFAULT=YES,URI="${name}_1.m3u8"`,
      `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="s",NAME="two",LANGUAGE="de",URI="${name}_2.m3u8"`,
      '#EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=320x180,AUDIO="s"',
      `${name}_0.m3u8`,
      "",
    ].join("\n"),
  );
}

/** The video of `ts`, with sound as raw AAC whose timestamps are in ID3 tags (packed audio). */
async function makePacked(source: string, folder: string): Promise<void> {
  const offset = (await startSeconds(`${folder}/ts_1_0.ts`)) - (await startSeconds(source, "a:0"));
  for (const index of [1, 2]) {
    const list = `${folder}/packed_${index}.csv`;
    await run("ffmpeg", [
      ...["-v", "error", "-y", "-i", source, "-map", `0:${index}`, "-c", "copy", "-f", "segment"],
      ...["-segment_time", "1.3", "-segment_format", "adts", "-segment_list", list],
      `${folder}/packed_${index}_%d.aac`,
    ]);
    const lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:2", "#EXT-X-PLAYLIST-TYPE:VOD"];
    for (const line of (await readFile(list, "utf8")).trim().split("\n")) {
      const [name, from, to] = line.split(",") as [string, string, string];
      const ticks = BigInt(Math.round((Number(from) + offset) * 90_000));
      await writeFile(`${folder}/${name}`, Buffer.concat([id3(ticks), await readFile(`${folder}/${name}`)]));
      lines.push(`#EXTINF:${Number(to) - Number(from)},`, name);
    }
    await writeFile(`${folder}/packed_${index}.m3u8`, [...lines, "#EXT-X-ENDLIST", ""].join("\n"));
  }
  assert.ok((await readdir(folder)).length > 20);
  const master = await readFile(`${folder}/ts.m3u8`, "utf8");
  await writeFile(`${folder}/packed.m3u8`, master.replaceAll(/ts_([12])\.m3u8/g, "packed_$1.m3u8"));
}

function id3(ticks: bigint): Buffer {
  const owner = Buffer.from("com.apple.streaming.transportStreamTimestamp\0", "latin1");
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(ticks);
  const size = owner.length + 8;
  const frame = Buffer.from([...Buffer.from("PRIV"), 0, 0, 0, size, 0, 0]);
  const head = Buffer.from([...Buffer.from("ID3"), 4, 0, 0, 0, 0, 0, size + 10]);
  return Buffer.concat([head, frame, owner, time]);
}

async function probed(path: string, ...args: string[]): Promise<Record<string, string>[]> {
  const said = await run("ffprobe", ["-v", "error", ...args, "-show_streams", "-of", "json", path]);
  return (JSON.parse(said) as { streams: Record<string, string>[] }).streams;
}

async function streamsOf(path: string): Promise<(readonly [string, string])[]> {
  const streams = await probed(path, "-count_packets");
  return streams.map((stream) => [stream.codec_name!, stream.nb_read_packets!]);
}

async function startSeconds(path: string, stream = "0"): Promise<number> {
  return Number((await probed(path, "-select_streams", stream))[0]!.start_time);
}

async function sampleRate(url: string): Promise<number> {
  return Number((await probed(url, "-select_streams", "a"))[0]!.sample_rate);
}

/** The time between the first video frame and the first audio frame. */
async function apartSeconds(url: string): Promise<number> {
  const [a, b] = await probed(url);
  return Math.abs(Number(a!.start_time) - Number(b!.start_time));
}
