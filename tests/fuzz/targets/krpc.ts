import { createHash } from "node:crypto";
import { assert } from "../../../src/base/assert.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { instant } from "../../../src/base/time.ts";
import { DhtNode } from "../../../src/protocol/dht/dht-node.ts";
import { decodeKrpc } from "../../../src/wire/dht/krpc-decode.ts";
import { encodeKrpc } from "../../../src/wire/dht/krpc-encode.ts";
import { decodeDhtState } from "../../../src/wire/dht/saved-nodes.ts";
import { seededRandom } from "../../seeded-random.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";
import { mutateBencode } from "../mutate-bencode.ts";

const id = "2:id20:abcdefghij0123456789";
const hash = "9:info_hash20:mnopqrstuvwxyz123456";
const target = "6:target20:mnopqrstuvwxyz123456";
const query = (method: string, args: string) => `d1:ad${args}e1:q${method.length}:${method}1:t2:aa1:y1:qe`;
const reply = (body: string) => `d2:ip6:\x01\x02\x03\x04\x1a\xe11:rd${body}e1:t2:aa1:v4:LT\x01\x021:y1:re`;

const corpus = () =>
  [
    query("ping", id),
    query("find_node", `${id}${target}4:wantl2:n42:n6e`),
    query("get_peers", `${id}${hash}6:scrapei1e`),
    query("announce_peer", `${id}12:implied_porti1e${hash}4:porti6881e5:token8:aoeusnth`),
    query("get", `${id}3:seqi4e${target}`),
    query(
      "put",
      `3:casi3e${id}1:k32:${"k".repeat(32)}4:salt3:abc3:seqi4e3:sig64:${"s".repeat(64)}5:token2:to1:vd1:a1:bee`,
    ),
    query("sample_infohashes", `${id}${target}`),
    query("vote", `${id}${target}`),
    reply(
      `${id}5:nodes26:${"n".repeat(26)}6:nodes638:${"m".repeat(38)}5:token2:xx6:valuesl6:abcdef18:${"p".repeat(18)}e`,
    ),
    reply(`4:BFpe256:${"\x01".repeat(256)}4:BFsd256:${"\x02".repeat(256)}${id}`),
    reply(`${id}8:intervali60e3:numi2e7:samples40:${"h".repeat(40)}`),
    reply(`${id}1:k32:${"k".repeat(32)}3:seqi4e3:sig64:${"s".repeat(64)}5:token2:to1:v5:hello`),
    "d1:eli201e5:Errore1:t2:aa1:y1:ee",
  ].map(latin1Bytes);

const extremes = () => [
  repeated(`d1:rd${id}6:valuesl`, "6:abcdef", "ee1:t2:aa1:y1:re", 200),
  repeated("d1:x", "l", "", 2000),
  repeated(`d1:ad${id}4:wantl`, "2:n4", "ee1:q4:ping1:t2:aa1:y1:qe", 400),
  repeated("d1:t2:aa1:x", "le", "e", 60_000),
];

const messages: FuzzTarget = {
  name: "krpc",
  corpus,
  extremes,
  mutate: mutateBencode,
  maxBytes: 4096,
  run(bytes) {
    const message = decodeKrpc(bytes);
    // A decoded message can be encoded again, except an unknown method, whose name is lost.
    if (message.kind === "query" && message.request.method !== "other")
      assert(decodeKrpc(encodeKrpc(message)).kind === "query", "can be encoded again");
    return message;
  },
};

const sha1 = (bytes: Uint8Array) => new Uint8Array(createHash("sha1").update(bytes).digest());

/** One node that receives all inputs from changing addresses: it sends at most three bytes per byte received, and stays small. */
function node(): FuzzTarget["run"] {
  const random = seededRandom(5);
  const setup = { families: [4, 6] as const, sha1, verifierOf: () => () => false, random, isReadOnly: false };
  const dht = new DhtNode(setup, instant(0));
  let count = 0;
  return (bytes) => {
    count++;
    const now = instant(count);
    const from = { host: `${20 + (count >> 16)}.${(count >> 8) & 255}.${count & 255}.5`, port: 6881 };
    dht.handle({ kind: "received", bytes, from }, now);
    let sent = 0;
    for (let output = dht.poll(); output; output = dht.poll())
      if (output.kind === "send") sent += output.bytes.length;
    assert(sent <= 3 * bytes.length, `${sent} bytes for ${bytes.length}`);
    dht.wake(now);
    while (dht.poll());
    const { peers, items } = dht.figures();
    assert(peers === 0 && items === 0, "no token was issued");
    return undefined;
  };
}

const whole: FuzzTarget = {
  name: "dht-node",
  corpus,
  extremes,
  mutate: mutateBencode,
  maxBytes: 4096,
  run: node(),
};

const state: FuzzTarget = {
  name: "dht-state",
  corpus: () => [latin1Bytes(`d2:n4d${id}5:nodes26:${"n".repeat(26)}e2:n6d${id}5:nodes0:ee`)],
  mutate: mutateBencode,
  run: decodeDhtState,
};

export const targets = [messages, whole, state];
