import assert from "node:assert/strict";
import { test } from "node:test";
import type { PeerAddress } from "../../src/base/address.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { startTunerControl, type TunerControlDependencies } from "../../src/devices/tuner-control.ts";
import { readRtpTs } from "../../src/media/rtp.ts";
import { nullPackets } from "../../src/media/ts-packet.ts";
import type { TcpHandlers } from "../../src/runtime/contract.ts";
import {
  readTunerFrame,
  readTunerValues,
  tunerFrame,
  tunerU32,
  tunerValue,
} from "../../src/wire/tuner/frame.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";

const NETWORK = { host: "192.168.1.5", bits: 24, interfaceName: "eth0", isLoopback: false };
const text = (tag: number, value: string) => tunerValue(tag, encodeUtf8(`${value}\0`));

/** A tuner with `count` channels; `connect` is a client of it, `datagrams` what it has sent. */
function tuner(count: number) {
  const clock = new FakeClock();
  const datagrams: { bytes: Uint8Array; to: PeerAddress }[] = [];
  const opened: number[] = [];
  const channels = Array.from({ length: count }, (_, i) => ({
    ...{ id: i + 1, number: String(100 + i), name: `Channel ${i} of a long list (HD)` },
  }));
  let accept: (socket: unknown) => TcpHandlers = () => assert.fail();
  let open = 0;
  const stop = startTunerControl({
    runtime: {
      clock,
      surroundings: { networks: () => [NETWORK] },
      net: {
        listen: async (_: PeerAddress, accepted: typeof accept) => {
          accept = accepted;
          return { close: async () => {} };
        },
        bindUdp: async () => ({
          send: (bytes: Uint8Array, to: PeerAddress) => void datagrams.push({ bytes: bytes.slice(), to }),
          close() {},
        }),
      },
    } as unknown as TunerControlDependencies["runtime"],
    ...{ tunerCount: 2, model: "HDHR4-2US", version: "1.2.3", isAllowed: () => true, log: SILENT_LOG },
    channels: async () => channels,
    async open({ id }) {
      opened.push(id);
      open++;
      let [left, isClosed] = [3, false];
      return {
        next: async () => (left-- > 0 ? nullPackets(10) : await new Promise<undefined>(() => {})),
        close() {
          if (!isClosed) open--;
          isClosed = true;
        },
      };
    },
  });
  const connect = (host = "192.168.1.77") => {
    const replies: Uint8Array[] = [];
    let isClosed = false;
    const socket = {
      ...{ remote: { host, port: 40_000 }, bufferedBytes: 0 },
      write: (bytes: Uint8Array) => void replies.push(bytes),
      close() {
        if (!isClosed) queueMicrotask(() => handlers.closed("closed by us"));
        isClosed = true;
      },
    };
    const handlers = accept(socket);
    const ask = async (name: string, value?: string, key = 0) => {
      const values = [text(3, name), ...(value === undefined ? [] : [text(4, value)])];
      const request = tunerFrame(4, key === 0 ? values : [...values, tunerValue(0x15, tunerU32(key))]);
      // A stream of bytes: a request may arrive in parts.
      handlers.received(request.slice(0, 5));
      handlers.received(request.slice(5));
      await settled();
      const frame = readTunerFrame(replies.shift() ?? assert.fail("no reply"))!;
      assert.equal(frame.type, 5);
      return Buffer.from(readTunerValues(frame.payload).at(-1)!.value).toString().replace(/\0$/, "");
    };
    return { ask, handlers, replies, close: () => socket.close(), isClosed: () => isClosed };
  };
  return { clock, connect, datagrams, opened, openCount: () => open, stop };
}

/** Scans as `hdhomerun_config scan` does. Returns the programme lines. */
async function scan(ask: (name: string, value?: string) => Promise<string>): Promise<string[]> {
  const found = [];
  for (let hertz = 57_000_000; hertz <= 800_000_000; hertz += 2_000_000) {
    await ask("/tuner0/channel", `auto:${hertz}`);
    if (/lock=none/.test(await ask("/tuner0/status"))) continue;
    const list = await ask("/tuner0/streaminfo");
    assert.match(list, /tsid=0x0001\n$/);
    found.push(...list.split("\n").slice(0, -2));
  }
  return found;
}

test("startTunerControl: a scan finds each channel once, in lists that clients accept", {
  timeout: 60_000,
}, async () => {
  const { connect } = tuner(700);
  const { ask } = connect();
  assert.equal(await ask("/sys/hwmodel"), "HDHR4-2US");
  assert.equal(await ask("/lineup/scan"), "state=complete progress=100% found=700");
  const numbers = (await scan(ask)).map((line) => /^(\d+): (\d+) Channel \d+ of/.exec(line)!.slice(1));
  assert.equal(new Set(numbers.map(([programme]) => programme)).size, 700);
  assert.deepEqual(
    new Set(numbers.map(([, number]) => Number(number) - 100)),
    new Set([...Array(700).keys()]),
  );
});

test("startTunerControl: sends a channel as RTP or plain datagrams, to the client only and until it leaves", async () => {
  const { connect, datagrams, opened, openCount } = tuner(3);
  const { ask, close } = connect();
  assert.match(await ask("/tuner0/target", "udp://192.168.1.77:5000"), /no channel is tuned/);
  assert.equal(await ask("/tuner0/vchannel", "102"), "102");
  assert.match(await ask("/tuner0/target", "udp://192.168.1.78:5000"), /^ERROR: the target must be/);
  assert.match(await ask("/tuner0/target", "udp://192.168.1.77:53"), /^ERROR: the port/);
  assert.equal(await ask("/tuner0/target", "rtp://192.168.1.77:5000"), "rtp://192.168.1.77:5000");
  await settled();
  // 30 packets are four full datagrams; the rest waits.
  assert.deepEqual(
    datagrams.map(({ bytes }) => readRtpTs(bytes)!.sequence),
    [0, 1, 2, 3],
  );
  assert.deepEqual(datagrams[0]!.to, { host: "192.168.1.77", port: 5000 });
  assert.equal(await ask("/tuner1/program", "1"), "1");
  await ask("/tuner1/target", "udp://192.168.1.77:5001");
  await settled();
  assert.equal(datagrams.at(-1)!.bytes.length, 7 * 188);
  assert.deepEqual([opened, openCount()], [[3, 1], 2]);
  assert.equal(await ask("/tuner1/target", "none"), "none");
  assert.equal(openCount(), 1);
  close();
  await settled();
  assert.equal(openCount(), 0);
});

test("startTunerControl: a lock keeps other clients out until it is released, forced, or expires", async () => {
  const { connect, clock } = tuner(3);
  const [one, other] = [connect(), connect("192.168.1.78")];
  assert.equal(await one.ask("/tuner0/lockkey", "77"), "192.168.1.77");
  assert.equal(await other.ask("/tuner0/channel", "none"), "ERROR: resource locked by 192.168.1.77");
  assert.equal(await other.ask("/tuner0/channel"), "none");
  assert.equal(await other.ask("/tuner1/vchannel", "101"), "101");
  assert.equal(await one.ask("/tuner0/vchannel", "101", 77), "101");
  assert.equal(await one.ask("/tuner0/lockkey", "none", 77), "none");
  assert.equal(await other.ask("/tuner0/vchannel", "102"), "102");
  await one.ask("/tuner0/lockkey", "78");
  await clock.advance(61_000);
  assert.equal(await other.ask("/tuner0/lockkey", "79"), "192.168.1.78");
  assert.equal(await one.ask("/tuner0/lockkey", "force"), "none");
});

test("startTunerControl: refuses strangers, other protocols, floods and idle connections", async () => {
  const { connect, clock } = tuner(3);
  assert.ok(connect("203.0.113.9").isClosed());
  const page = connect();
  page.handlers.received(encodeUtf8("POST / HTTP/1.1\r\nHost: 192.168.1.5\r\n\r\n"));
  assert.ok(page.isClosed());
  const flood = connect();
  const request = tunerFrame(4, [text(3, "/sys/model")]);
  flood.handlers.received(Buffer.concat(Array(40).fill(request)));
  assert.ok(flood.isClosed());
  const idle = connect();
  assert.match(await idle.ask("/sys/model", "other"), /can only be read/);
  assert.match(await idle.ask("/tuner7/status"), /unknown getset variable/);
  assert.match(await idle.ask("toString"), /unknown getset variable/);
  await clock.advance(11 * 60_000);
  assert.ok(idle.isClosed());
});
