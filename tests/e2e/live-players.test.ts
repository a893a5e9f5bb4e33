import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import HLS from "hls-parser";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { type BroadcastProcess, startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";

const { after, before, describe, test } = await testsThatNeed("ffmpeg");

/** Tolerance for a busy machine. */
const SLOW = { timeout: 90_000 };
/** How far the player seeks back: more than the engine sends at once. */
const BACK_SECONDS = 20;

interface Session {
  readonly playback_url: string;
  readonly stat_url: string;
  readonly command_url: string;
  readonly event_url: string;
  readonly is_live: number;
}

describe("players of a live stream, by real processes", { timeout: 600_000 }, () => {
  let scratch: TempFolder;
  let source: BroadcastProcess;
  let engines: EngineProcess[] = [];

  before(async () => {
    scratch = await tempFolder("live-players");
    source = await startBroadcast("test-pattern");
    engines = await Promise.all([startEngine(), startEngine()]);
  }, SLOW);
  after(async () => {
    for (const engine of engines) await engine.stop();
    await source?.stop();
    await scratch?.remove();
  });

  const start = async (engine: EngineProcess, output: string, more = ""): Promise<Session> => {
    const url = `${watchUrl(engine, source.magnet, output)}&format=json${more}`;
    return (await json(url)) as unknown as Session;
  };

  test(
    "MPEG-TS begins with the tables and a keyframe; liveseek moves the position back, and stat reports it",
    SLOW,
    inRealTime(async () => {
      const session = await start(engines[0]!, "getstream", "&use_api_events=1");
      const said = session.is_live || (await json(session.event_url));
      assert.deepEqual(said, session.is_live === 1 ? 1 : { name: "live_changed", params: { is_live: 1 } });
      const recording = await record(session.playback_url);
      const { live_first } = await until(
        () => livepos(session),
        ({ live_first, live_last }) => Number(live_last) - Number(live_first) > BACK_SECONDS + 3,
      );
      const now = await livepos(session);
      assert.deepEqual(Object.keys(now).sort(), [
        ...["buffer_pieces", "first_ts", "is_live", "last", "last_ts", "live_first", "live_last", "pos"],
      ]);
      for (const value of Object.values(now)) assert.match(value, /^\d+$/);
      assert.deepEqual([now.is_live, now.last, now.live_first], ["1", now.live_last, live_first]);
      const back = Number(now.live_last) - BACK_SECONDS;
      await json(`${session.command_url}?method=liveseek&pos=${back}`);
      const then = await until(
        () => livepos(session),
        ({ pos }) => Number(pos) > back,
      );
      assert.ok(Number(then.pos) < Number(then.live_last), "the stream goes on, the player is behind");
      const file = scratch.file("recorded.ts");
      await writeFile(file, await recording.end());
      const packets = await videoPackets(file);
      assert.equal(packets[0]!.isKey, true);
      const steps = packets.map(({ at }, i) => at - (packets[i - 1]?.at ?? at));
      const jumps = steps.flatMap((step, i) => (Math.abs(step) > 0.5 ? [i] : []));
      assert.equal(jumps.length, 1, `jumps of ${jumps.map((i) => steps[i])} s`);
      const jump = steps[jumps[0]!]!;
      assert.ok(jump < 1 - BACK_SECONDS && jump > -BACK_SECONDS - 4, `went back by ${jump} s`);
      assert.equal(packets[jumps[0]!]!.isKey, true);
    }),
  );

  test(
    "HLS: one segment has one number and the same bytes on every engine",
    SLOW,
    inRealTime(async () => {
      const sessions = await Promise.all(engines.map((engine) => start(engine, "manifest.m3u8")));
      const numbersOf = async ({ playback_url }: Session) => {
        const manifest = HLS.parse(await text(playback_url)) as HLS.types.MediaPlaylist;
        const whole = manifest.segments.filter(({ uri }) => uri);
        return new Map(whole.map(({ mediaSequenceNumber, uri }) => [mediaSequenceNumber, uri]));
      };
      const [ours, theirs] = await until(
        () => Promise.all(sessions.map(numbersOf)),
        ([a, b]) => [...a!.keys()].filter((number) => b!.has(number)).length >= 3,
      );
      // An engine that joined within a segment has only the end of it as its first segment.
      for (const number of [...ours!.keys()].filter((each) => theirs!.has(each)).slice(1)) {
        const [a, b] = await Promise.all([bytes(ours!.get(number)!), bytes(theirs!.get(number)!)]);
        assert.ok(a.length > 10_000);
        assert.deepEqual(a, b, `segment ${number}`);
      }
    }),
  );

  test(
    "HLS of low latency: the manifest request blocks until the part exists, and the hinted part arrives",
    SLOW,
    inRealTime(async () => {
      const { playback_url } = await start(engines[0]!, "manifest.m3u8");
      const before = HLS.parse(await text(playback_url)) as HLS.types.MediaPlaylist;
      const next = before.mediaSequenceBase! + before.segments.filter(({ uri }) => uri).length;
      const query = `_HLS_msn=${next + 1}&_HLS_part=0`;
      const later = HLS.parse(await text(`${playback_url}?${query}`)) as HLS.types.MediaPlaylist;
      const open = later.segments.find(({ mediaSequenceNumber }) => mediaSequenceNumber === next + 1);
      const hint = later.segments.flatMap(({ parts }) => parts).find((part) => part.hint);
      assert.ok(open?.parts.some((part) => !part.hint));
      assert.ok((await bytes(hint!.uri)).length % 188 === 0);
      assert.equal((await fetch(`${playback_url}?_HLS_msn=${next + 1000}`)).status, 400);
    }),
  );

  for (const output of ["getstream", "manifest.m3u8"])
    test(
      `ffmpeg plays /ace/${output} for ten seconds without a warning`,
      SLOW,
      inRealTime(async () => {
        const url = watchUrl(engines[1]!, source.magnet, output);
        const said = await run("ffmpeg", ["-v", "warning", "-i", url, "-t", "10", "-f", "null", "-"]);
        assert.equal(said.trim(), "");
      }),
    );
});

async function json(url: string): Promise<Record<string, unknown>> {
  const { response, error } = (await (await fetch(url)).json()) as {
    response: Record<string, unknown>;
    error: unknown;
  };
  assert.equal(error, null, url);
  return response;
}

async function livepos({ stat_url }: Session): Promise<Record<string, string>> {
  return ((await json(stat_url)).livepos ?? {}) as Record<string, string>;
}

async function text(url: string): Promise<string> {
  const answer = await fetch(url);
  assert.equal(answer.status, 200, url);
  return answer.text();
}

async function bytes(url: string): Promise<Uint8Array> {
  const answer = await fetch(url);
  assert.equal(answer.status, 200, url);
  return new Uint8Array(await answer.arrayBuffer());
}

/** Repeats `look` until its result satisfies `fits`; the test's timeout ends it. */
async function until<T>(look: () => Promise<T>, fits: (found: T) => boolean): Promise<T> {
  for (;;) {
    const found = await look();
    if (fits(found)) return found;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Reads a stream as a player would, until the caller takes the bytes. */
async function record(url: string): Promise<{ end(): Promise<Uint8Array> }> {
  const chunks: Uint8Array[] = [];
  const reader = (await fetch(url)).body!.getReader();
  const reading = (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      chunks.push(value);
    }
  })();
  // Handles a rejection now, because the result is awaited only later.
  reading.catch(() => {});
  return {
    async end() {
      await reader.cancel();
      await reading;
      const all = Buffer.concat(chunks);
      return all.subarray(0, all.length - (all.length % 188));
    },
  };
}

async function videoPackets(file: string): Promise<{ at: number; isKey: boolean }[]> {
  const entries = ["-select_streams", "v", "-show_entries", "packet=pts_time,flags", "-of", "csv=p=0"];
  const said = await run("ffprobe", ["-v", "error", ...entries, file]);
  return said
    .split("\n")
    .filter((line) => /^\d/.test(line))
    .map((line) => ({ at: Number(line.split(",")[0]), isKey: line.includes("K") }));
}
