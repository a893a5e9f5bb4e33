import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../../src/base/errors.ts";
import { CastMessageReader, decodeCastMessage, encodeCastMessage } from "../../src/wire/cast-message.ts";

const MESSAGE = {
  source: "sender-0",
  destination: "receiver-0",
  namespace: "urn:x-cast:com.google.cast.tp.heartbeat",
  payload: `{"type":"PING","text":"${"é".repeat(100)}"}`,
};
/** Made by `python3-pychromecast`: the message above with the payload `{"type":"PING"}`. */
const PING =
  "0800120873656e6465722d301a0a72656365697665722d30222775726e3a782d636173743a636f6d2e676f6f676c652e636173742e74702e6865617274626561742800320f7b2274797065223a2250494e47227d";

test("encodeCastMessage, decodeCastMessage: agree with each other, and with another implementation", () => {
  const bytes = encodeCastMessage(MESSAGE);
  assert.equal(Buffer.from(bytes).readUInt32BE(0), bytes.length - 4);
  assert.deepEqual(decodeCastMessage(bytes.subarray(4)), MESSAGE);
  const ping = { ...MESSAGE, payload: '{"type":"PING"}' };
  assert.deepEqual(decodeCastMessage(Buffer.from(PING, "hex")), ping);
  assert.equal(Buffer.from(encodeCastMessage(ping).subarray(4)).toString("hex"), PING);
  assert.throws(() => encodeCastMessage({ ...MESSAGE, payload: "x".repeat(70_000) }), RangeError);
});

test("decodeCastMessage: skips fields that it does not know, and refuses cut ones", () => {
  const body = encodeCastMessage(MESSAGE).subarray(4);
  const more = Buffer.concat([body, Buffer.from("3a02000140014901020304050607085501020304", "hex")]);
  assert.equal(decodeCastMessage(more).namespace, MESSAGE.namespace);
  for (let length = 0; length < body.length; length++) {
    const cut = body.subarray(0, length);
    const outcome = () => decodeCastMessage(cut).payload === MESSAGE.payload;
    // A cut between two fields leaves a message without a payload, which is valid.
    try {
      assert.equal(outcome(), false);
    } catch (thrown) {
      assert.ok(thrown instanceof DecodeError, String(thrown));
    }
  }
  assert.throws(() => decodeCastMessage(Buffer.from("ffffffffffffffffffffff01", "hex")), DecodeError);
  assert.throws(() => decodeCastMessage(Buffer.from("0b00", "hex")), DecodeError);
});

test("CastMessageReader: joins messages that arrive in parts, and refuses a long one before it arrives", () => {
  const bytes = Buffer.concat([encodeCastMessage(MESSAGE), encodeCastMessage(MESSAGE)]);
  const reader = new CastMessageReader();
  const messages = [...bytes].flatMap((byte) => reader.push(new Uint8Array([byte])));
  assert.deepEqual(messages, [MESSAGE, MESSAGE]);
  assert.throws(() => new CastMessageReader().push(new Uint8Array([0, 1, 0, 1])), DecodeError);
});
