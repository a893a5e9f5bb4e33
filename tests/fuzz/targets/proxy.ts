import { assert } from "../../../src/base/assert.ts";
import { concatBytes, latin1Bytes } from "../../../src/base/bytes.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import { parseProxy } from "../../../src/net/confined/proxy.ts";
import {
  type HandshakeStep,
  ProxyRefusal,
  startProxyHandshake,
} from "../../../src/net/confined/proxy-handshake.ts";
import { decodeSocksDatagram } from "../../../src/wire/socks5.ts";
import type { FuzzTarget } from "../contract.ts";

const WISH = { command: "connect", to: { host: "a.example", port: 6881 } } as const;

/** Runs a whole handshake, with replies split as the first byte determines. */
function talk(url: string, input: Uint8Array): unknown {
  const proxy = parseProxy(url);
  const said = startProxyHandshake(proxy, WISH);
  const step = 1 + (input[0] ?? 0);
  for (let at = 1; at < input.length; at += step) {
    let next: HandshakeStep;
    try {
      next = said.received(input.subarray(at, at + step));
    } catch (thrown) {
      if (!(thrown instanceof ProxyRefusal)) throw thrown;
      assert(!thrown.message.includes("hunter2"), "no password in a message");
      throw new DecodeError("proxy", at, thrown.message);
    }
    if (next.kind !== "done") continue;
    assert(next.rest.length <= input.length, "no more is left than came");
    return next;
  }
  return undefined;
}

const answer = (...parts: (Uint8Array | string)[]) =>
  concatBytes(parts.map((part) => (typeof part === "string" ? latin1Bytes(part) : part)));
const bytes = (...values: number[]) => new Uint8Array(values);

const socks: FuzzTarget = {
  name: "proxy-socks5",
  corpus: () => [
    answer(bytes(200, 5, 0, 5, 0, 0, 1, 1, 2, 3, 4, 4, 56), "rest"),
    answer(bytes(0, 5, 2, 1, 0, 5, 0, 0, 3, 4), "here", bytes(4, 56)),
    answer(bytes(3, 5, 2, 1, 1)),
    answer(bytes(9, 5, 0, 5, 7, 0, 4), new Uint8Array(18)),
  ],
  run: (input) => talk("socks5://me:hunter2@127.0.0.1:1080", input),
};

const http: FuzzTarget = {
  name: "proxy-http",
  corpus: () => [
    answer(bytes(255), "HTTP/1.1 200 Connection established\r\n\r\nrest"),
    answer(bytes(7), "HTTP/1.0 407 Who\nVia: x\n\n"),
  ],
  extremes: () => [
    answer(bytes(0), "HTTP/1.1 200 OK\r\n", "A: b\r\n".repeat(2800)),
    answer(bytes(255), "HTTP/1.1 200 OK", "\n ".repeat(30_000)),
  ],
  words: ["\r\n", "\n\n", "HTTP/1.1 ", "200"].map(latin1Bytes),
  run: (input) => talk("http://me:hunter2@127.0.0.1:3128", input),
};

const datagram: FuzzTarget = {
  name: "proxy-datagram",
  corpus: () => [
    answer(bytes(0, 0, 0, 1, 1, 2, 3, 4, 26, 225), "d1:q4:pinge"),
    answer(bytes(0, 0, 0, 3, 4), "here", bytes(26, 225), "d1:q4:pinge"),
    answer(bytes(0, 0, 0, 4), new Uint8Array(18), "x"),
  ],
  run(input) {
    const { from, payload } = decodeSocksDatagram(input);
    assert(from.host.length <= 255 && payload.length < input.length, "within what came");
    return { from, payload };
  },
};

export const targets = [socks, http, datagram];
