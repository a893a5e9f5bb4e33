import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT_LOG } from "../../src/base/log.ts";
import { sendToTarget } from "../../src/devices/tuner-sender.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";

test("sendToTarget: without a socket the stream ends, and no channel stays open", async () => {
  let open = 0;
  let ended = 0;
  sendToTarget(
    {
      ...{ clock: new FakeClock(), log: SILENT_LOG },
      net: { bindUdp: () => Promise.reject(new Error("no address is bound")) },
    },
    { address: { host: "192.168.1.77", port: 5000 }, isRtp: false },
    async () => {
      open++;
      return { next: async () => undefined, close: () => void open-- };
    },
    () => ended++,
  );
  await settled();
  assert.deepEqual([open, ended], [0, 1]);
});
