import { runtime } from "#runtime";
import { SILENT_LOG } from "../../src/base/log.ts";
import { createContentResolver } from "../../src/engine/content.ts";
import { createInspector } from "../../src/engine/inspect.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import { Holds } from "../../src/playback/holds.ts";
import { FakeClock } from "./fake-clock.ts";
import { SETTINGS } from "./fake-engine.ts";
import { FakeTransfers } from "./fake-transfers.ts";

/** Creates an inspector with a real outbound client and fake transfers. */
export function createTestInspector() {
  const clock = new FakeClock();
  const transfers = new FakeTransfers();
  const outbound = createOutbound(runtime, SILENT_LOG);
  const parts = { runtime, settings: SETTINGS, transfers, outbound, log: SILENT_LOG };
  const holds = new Holds({
    clock,
    transfers,
    idleMs: 1000,
    maxTransfers: 24,
    endUnused() {},
    log: SILENT_LOG,
  });
  const access = { clock, settings: SETTINGS, resolve: createContentResolver(parts), holds };
  return { clock, transfers, inspector: createInspector({ clock, outbound, transfers, access }) };
}
