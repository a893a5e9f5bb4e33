import { runtime } from "#runtime";
import { createContentResolver } from "../../src/engine/content.ts";
import { Holds } from "../../src/engine/holds.ts";
import { createInspector } from "../../src/engine/inspect.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import { FakeClock } from "./fake-clock.ts";
import { SETTINGS, SILENT } from "./fake-house.ts";
import { FakeTransfers } from "./fake-transfers.ts";

/** An inspector over a real outbound client and transfers that never touch a network. */
export function inspectHouse() {
  const clock = new FakeClock();
  const transfers = new FakeTransfers();
  const outbound = createOutbound(runtime, SILENT);
  const parts = { runtime, settings: SETTINGS, transfers, outbound, log: SILENT };
  const holds = new Holds({ clock, transfers, idleMs: 1000, log: SILENT });
  const access = { clock, settings: SETTINGS, resolve: createContentResolver(parts), holds };
  return { clock, transfers, inspector: createInspector({ clock, outbound, transfers, access }) };
}
