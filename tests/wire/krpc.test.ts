import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes, latin1Text, toHex } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import type { KrpcMessage, KrpcReply } from "../../src/wire/dht/krpc.ts";
import { decodeKrpc } from "../../src/wire/dht/krpc-decode.ts";
import { encodeKrpc, encodeKrpcWithin } from "../../src/wire/dht/krpc-encode.ts";

const id = latin1Bytes("abcdefghij0123456789");
const target = latin1Bytes("mnopqrstuvwxyz123456");
const t = latin1Bytes("aa");

test("encodeKrpc, decodeKrpc: the examples of BEP 5 and 44", () => {
  const examples: [text: string, message: KrpcMessage][] = [
    [
      "d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:v4:SL\x00\x011:y1:qe",
      { kind: "query", transaction: t, id, isReadOnly: false, request: { method: "ping" } },
    ],
    [
      "d1:ad2:id20:abcdefghij01234567899:info_hash20:mnopqrstuvwxyz1234564:wantl2:n42:n6ee1:q9:get_peers2:roi1e1:t2:aa1:v4:SL\x00\x011:y1:qe",
      {
        ...{ kind: "query", transaction: t, id, isReadOnly: true },
        request: { method: "get_peers", target, want: [4, 6], isScrape: false },
      },
    ],
    [
      "d1:ad2:id20:abcdefghij012345678912:implied_porti1e9:info_hash20:mnopqrstuvwxyz1234564:porti1e4:seedi0e5:token8:aoeusnthe1:q13:announce_peer1:t2:aa1:v4:SL\x00\x011:y1:qe",
      {
        ...{ kind: "query", transaction: t, id, isReadOnly: false },
        request: { method: "announce_peer", target, port: 0, token: latin1Bytes("aoeusnth"), isSeed: false },
      },
    ],
    [
      "d1:ad2:id20:abcdefghij01234567895:token2:to1:v11:Hello worlde1:q3:put1:t2:aa1:v4:SL\x00\x011:y1:qe",
      {
        ...{ kind: "query", transaction: t, id, isReadOnly: false },
        request: {
          ...{ method: "put", token: latin1Bytes("to"), cas: undefined },
          item: { value: latin1Bytes("11:Hello world") },
        },
      },
    ],
  ];
  for (const [text, message] of examples) {
    assert.equal(latin1Text(encodeKrpc(message)), text);
    assert.deepEqual(decodeKrpc(latin1Bytes(text)), message);
  }
});

test("decodeKrpc: a response with nodes of both families, peers, and our external address", () => {
  const nodes = `${"n".repeat(20)}\x01\x02\x03\x04\x1a\xe1`;
  const nodes6 = `${"m".repeat(20)}\x20\x01\x0d\xb8${"\0".repeat(11)}\x01\x1a\xe2`;
  const text = `d2:ip6:\x05\x06\x07\x08\x00\x501:rd2:id20:abcdefghij01234567895:nodes26:${nodes}6:nodes638:${nodes6}5:token1:x6:valuesl6:\x01\x01\x01\x01\x00\x0118:${"\x20".repeat(16)}\x00\x025:wrongee1:t2:aa1:y1:re`;
  const reply = decodeKrpc(latin1Bytes(text));
  assert.equal(reply.kind, "reply");
  assert.deepEqual((reply as KrpcReply).yourAddress, { host: "5.6.7.8", port: 80 });
  assert.deepEqual((reply as KrpcReply).nodes, [
    { id: latin1Bytes("n".repeat(20)), address: { host: "1.2.3.4", port: 6881 } },
  ]);
  assert.deepEqual(
    (reply as KrpcReply).nodes6!.map(({ address }) => address),
    [{ host: "2001:db8::1", port: 6882 }],
  );
  assert.deepEqual(
    (reply as KrpcReply).peers!.map(({ port }) => port),
    [1, 2],
  );
});

test("decodeKrpc: refuses malformed messages", () => {
  const query = (args: string, method = "4:ping") => `d1:a${args}1:q${method}1:t2:aa1:y1:qe`;
  const own = "2:id20:abcdefghij0123456789";
  const hash = "9:info_hash20:mnopqrstuvwxyz123456";
  const broken = [
    "",
    "d",
    "le",
    "de",
    "i1e",
    "d1:y1:q1:t2:aae",
    query("de"),
    query("d2:id19:abcdefghij012345678e"),
    query(`d${own}e`, `33:${"p".repeat(33)}`),
    query(`d${own}e`).slice(0, -1),
    `${query(`d${own}e`)}x`,
    `d1:ad${own}e1:q4:ping1:t33:${"t".repeat(33)}1:y1:qe`,
    `d1:ad${own}e1:q4:ping1:t2:aa1:y1:ze`,
    query(`d${own}e`, "9:find_node"),
    query(`d${own}${hash}4:porti0e5:token1:xe`, "13:announce_peer"),
    query(`d${own}${hash}4:porti65536e5:token1:xe`, "13:announce_peer"),
    query(`d${own}${hash}4:porti1e5:token65:${"x".repeat(65)}e`, "13:announce_peer"),
    query(`d${own}5:token1:xe`, "3:put"),
    query(`d${own}5:token1:x1:v1001:${"v".repeat(1001)}e`, "3:put"),
    query(`d1:k32:${"k".repeat(32)}${own}5:token1:x1:v1:ve`, "3:put"),
    "d1:rd2:id20:abcdefghij01234567895:nodes25:aaaaaaaaaaaaaaaaaaaaaaaaae1:t2:aa1:y1:re",
    "d1:t2:aa1:rd2:id20:abcdefghij0123456789e1:y1:re",
    "d1:rd2:id20:abcdefghij01234567897:samples19:mnopqrstuvwxyz12345e1:t2:aa1:y1:re",
    `d1:x${"l".repeat(200)}${"e".repeat(200)}e`,
    `d1:x2048:${"x".repeat(2048)}e`,
  ];
  for (const text of broken)
    assert.throws(() => decodeKrpc(latin1Bytes(text)), DecodeError, text.slice(0, 80));
});

test("decodeKrpc: returns copies, not views of the input", () => {
  const bytes = encodeKrpc({
    kind: "query",
    transaction: t,
    id,
    isReadOnly: false,
    request: { method: "ping" },
  });
  const message = decodeKrpc(bytes);
  bytes.fill(0);
  assert.ok(message.kind === "query");
  assert.equal(toHex(message.id), toHex(id));
});

test("encodeKrpcWithin: stays within the limit and divides the space between peers and nodes", () => {
  const nodes = Array.from({ length: 8 }, (_, i) => ({
    id: target,
    address: { host: `1.2.3.${i}`, port: 1 },
  }));
  const nodes6 = Array.from({ length: 8 }, (_, i) => ({
    id: target,
    address: { host: `2001:db8::${i}`, port: 1 },
  }));
  const peers = Array.from({ length: 100 }, (_, i) => ({ host: `9.2.3.${i}`, port: 1 }));
  const reply: KrpcReply = {
    kind: "reply",
    transaction: t,
    id,
    token: t,
    nodes,
    nodes6,
    peers,
    yourAddress: peers[0]!,
  };
  for (let limit = 0; limit < 1800; limit += 7) {
    const bytes = encodeKrpcWithin(reply, limit);
    assert.ok(!bytes || bytes.length <= limit, `${bytes?.length} of ${limit}`);
    assert.ok(bytes || limit <= 100, `nothing of ${limit}`);
    if (limit !== 301) continue;
    const small = decodeKrpc(bytes!) as KrpcReply;
    assert.ok(
      small.nodes!.length >= 3 && small.peers!.length >= 5,
      `${small.nodes!.length} ${small.peers!.length}`,
    );
  }
});
