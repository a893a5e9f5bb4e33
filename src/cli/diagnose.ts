import type { Diagnosis } from "../engine/diagnosis/contract.ts";
import type { Engine } from "../engine/engine.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings.ts";
import { machineRows } from "./machine-rows.ts";
import { settingRows } from "./setting-rows.ts";

/** Everything that can be told of a running engine: the machine, the settings, how peers are found and reached, what plays. */
export async function diagnose(
  runtime: Runtime,
  config: Config,
  engine: Pick<Engine, "diagnosis">,
): Promise<Diagnosis> {
  const [machine, { rows, streams }] = await Promise.all([machineRows(runtime, config), engine.diagnosis()]);
  return { rows: [...rows, ...machine, ...settingRows(config)], streams };
}
