import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { addressText, type PeerAddress } from "../../src/base/address.ts";
import { concatBytes } from "../../src/base/bytes.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { usesWebRtc } from "../../src/net/confined/proxy.ts";
import type { UdpReceiver } from "../../src/net/contract.ts";
import { webRtcAddresses } from "../../src/net/webrtc/own-addresses.ts";
import { openWebRtc } from "../../src/net/webrtc/webrtc.ts";
import { encodeStun, peekStun } from "../../src/protocol/webrtc/stun.ts";
import type { Clock, TcpHandlers, TcpSocket } from "../../src/runtime/contract.ts";
import type { Offer } from "../../src/wire/tracker/server-ws.ts";
import { FakeClock } from "../engine/fake-clock.ts";

const ONE = "1".repeat(40) as Infohash;
const TWO = "2".repeat(40) as Infohash;

/** UDP between the hubs of a test, with a log of the addresses that packets were sent to. */
class Network {
  readonly #receivers = new Map<string, UdpReceiver>();
  readonly sentTo: string[] = [];

  /** Opens a hub at `host`, port 1000. Content ONE is open. */
  async hub(host: string, stunServers: readonly string[] = [], clock: Clock = runtime.clock) {
    const own = { host, port: 1000 };
    const side = new Side();
    const isOpen = (infohash: Infohash) => infohash === ONE;
    const hub = await openWebRtc({
      ...{ runtime: { ...runtime, clock }, stunServers, isOpen, log: SILENT_LOG },
      udp: {
        send: (bytes, to) => this.#send(bytes, own, to),
        listen: (_protocol, received) => void this.#receivers.set(addressText(own), received),
      },
      ownAddresses: () => [own],
      adopt: (infohash, socket) => (isOpen(infohash) ? side.take(socket) : undefined),
    });
    hub.listen((socket) => side.take(socket));
    return { hub, side };
  }

  /** Answers datagrams to an address. */
  serve(at: PeerAddress, respond: (bytes: Uint8Array, from: PeerAddress) => Uint8Array): void {
    this.#receivers.set(addressText(at), (bytes, from) => this.#send(respond(bytes, from), at, from));
  }

  #send(bytes: Uint8Array, from: PeerAddress, to: PeerAddress): void {
    this.sentTo.push(addressText(to));
    setImmediate(() => this.#receivers.get(addressText(to))?.(bytes, from));
  }
}

/** The connections of one hub. */
class Side {
  readonly sockets: TcpSocket[] = [];
  readonly received: Uint8Array[] = [];
  readonly closed: string[] = [];
  #changed = () => {};

  take(socket: TcpSocket): TcpHandlers {
    this.sockets.push(socket);
    this.#changed();
    return {
      received: (bytes) => {
        this.received.push(bytes.slice());
        this.#changed();
      },
      drained() {},
      closed: (reason) => {
        this.closed.push(reason);
        this.#changed();
      },
    };
  }

  async until(isTrue: () => boolean): Promise<void> {
    while (!isTrue())
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
  }
}

/** An offer with other candidates or another fingerprint. */
function changed(offer: Offer, change: (sdp: string) => string): Offer {
  return { ...offer, description: { ...offer.description, sdp: change(offer.description.sdp) } };
}

test("WebRtc: two engines connect, and bytes arrive in both directions", async () => {
  const network = new Network();
  const [a, b] = [await network.hub("10.0.0.1"), await network.hub("10.0.0.2")];
  const [offer] = await a.hub.offers(ONE, true, 1);
  a.hub.answered(ONE, (await b.hub.answer(ONE, true, offer!))!);
  await Promise.all([a, b].map(({ side }) => side.until(() => side.sockets.length === 1)));
  const [ours, theirs] = [a.side.sockets[0]!, b.side.sockets[0]!];
  assert.equal(ours.transport, "webrtc");
  assert.deepEqual(ours.remote, { host: "10.0.0.2", port: 1000 });
  const bytes = new Uint8Array(100_000).map((_, i) => i);
  ours.write(bytes.slice());
  theirs.write(new Uint8Array([1, 2, 3]));
  await b.side.until(() => concatBytes(b.side.received).length === bytes.length);
  assert.deepEqual(concatBytes(b.side.received), bytes);
  await a.side.until(() => a.side.received.length > 0);
  assert.deepEqual([...concatBytes(a.side.received)], [1, 2, 3]);
  ours.close();
  await b.side.until(() => b.side.closed.length === 1);
  assert.deepEqual([a.hub.size, b.hub.size], [0, 0]);
  b.hub.close();
});

test("WebRtc: an offer from a tracker on the Internet does not lead to local addresses", async () => {
  const network = new Network();
  const clock = new FakeClock();
  const [a, b] = [await network.hub("10.0.0.1"), await network.hub("60.0.0.2", [], clock)];
  const [offer] = await a.hub.offers(ONE, true, 1);
  const hosts = ["192.168.1.1", "127.0.0.1", "169.254.1.1", "224.0.0.1", "::1", "fd00::1", "60.1.2.3"];
  const lines = hosts.map((host, i) => `a=candidate:${i} 1 udp 1 ${host} 53 typ host\r\n`).join("");
  const hostile = changed(offer!, (sdp) => sdp.replace(/a=candidate.*\r\n/, lines));
  assert.ok(await b.hub.answer(ONE, false, hostile));
  await clock.advance(10_000);
  assert.deepEqual([...new Set(network.sentTo)], ["60.1.2.3:53"]);
  a.hub.close();
  b.hub.close();
});

test("WebRtc: answers only well-formed offers for open content, and a bounded number of them", async () => {
  const network = new Network();
  const [a, b] = [await network.hub("10.0.0.1"), await network.hub("10.0.0.2")];
  const [offer] = await a.hub.offers(ONE, true, 1);
  assert.equal(await b.hub.answer(TWO, true, offer!), undefined);
  assert.equal(
    await b.hub.answer(
      ONE,
      true,
      changed(offer!, () => "v=0"),
    ),
    undefined,
  );
  let answered = 0;
  for (let i = 0; i < 2_000; i++) if (await b.hub.answer(ONE, true, { ...offer!, id: `${i}` })) answered++;
  assert.equal(answered, 32);
  for (let i = 0; i < 1_000; i++) await a.hub.offers(ONE, true, 5);
  assert.equal(a.hub.size, 0, "offers are no connections");
  assert.equal(network.sentTo.filter((to) => to !== "10.0.0.1:1000").length, 0);
  a.hub.close();
  b.hub.close();
});

test("WebRtc: a peer with another certificate than the described one is refused", async () => {
  const network = new Network();
  const [a, b] = [await network.hub("10.0.0.1"), await network.hub("10.0.0.2")];
  const [offer] = await a.hub.offers(ONE, true, 1);
  const answer = await b.hub.answer(ONE, true, offer!);
  const other = changed(answer!, (sdp) => sdp.replace(/sha-256 ..:..:../, "sha-256 00:00:00"));
  a.hub.answered(ONE, other);
  while (a.hub.size > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual([a.side.sockets, b.side.sockets], [[], []]);
  b.hub.close();
});

test("WebRtc: no server is asked by default; a STUN server of the settings adds the external address", async () => {
  const network = new Network();
  const stun = { host: "60.9.9.9", port: 3478 };
  network.serve(stun, (bytes, from) => {
    const mapped = { host: "60.7.7.7", port: from.port };
    const { transaction } = peekStun(bytes);
    return encodeStun({ kind: "success", transaction, mapped }, undefined, runtime.sha1);
  });
  const plain = await network.hub("10.0.0.1");
  await plain.hub.offers(ONE, true, 5);
  assert.deepEqual(network.sentTo, []);
  const { hub } = await network.hub("10.0.0.2", [addressText(stun)]);
  const [offer] = await hub.offers(ONE, true, 1);
  assert.deepEqual(offer!.description.sdp.match(/\S+ \d+ typ host/g), [
    "10.0.0.2 1000 typ host",
    "60.7.7.7 1000 typ host",
  ]);
  plain.hub.close();
  hub.close();
});

test("webRtcAddresses: strangers on the Internet learn no local address", () => {
  const networks = ["127.0.0.1", "192.168.1.5", "fe80::1", "2001:db8::5"].map((host) => ({
    host,
    isLoopback: host.startsWith("127"),
  }));
  const external = { host: "60.1.1.1", port: 7 };
  const hosts = (p2pHost: string, isLocal: boolean) =>
    webRtcAddresses({ p2pHost, port: 5, networks, external, isLocal }).map(addressText);
  assert.deepEqual(hosts("::", false), ["[2001:db8::5]:5", "60.1.1.1:7"]);
  assert.deepEqual(hosts("::", true), ["192.168.1.5:5", "[2001:db8::5]:5", "60.1.1.1:7"]);
  assert.deepEqual(hosts("0.0.0.0", true), ["192.168.1.5:5", "60.1.1.1:7"]);
  assert.deepEqual(hosts("127.0.0.1", true), ["127.0.0.1:5", "60.1.1.1:7"]);
});

test("usesWebRtc: off with any proxy", () => {
  assert.equal(usesWebRtc({ webrtc: true, proxy: "" }), true);
  assert.equal(usesWebRtc({ webrtc: true, proxy: "socks5://127.0.0.1:1080" }), false);
  assert.equal(usesWebRtc({ webrtc: false, proxy: "" }), false);
});
