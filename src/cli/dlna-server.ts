import { addressText } from "../base/address.ts";
import type { Log } from "../base/log.ts";
import { createMediaServer } from "../devices/media-server.ts";
import type { MediaServer } from "../devices/media-server-contract.ts";
import { announceMediaServer } from "../devices/ssdp-announcer.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings/settings.ts";
import { VERSION } from "../settings/version.ts";

/** The DLNA media server of an engine. */
export interface DlnaServer {
  readonly mediaServer: MediaServer;
  /** Announces it at the port of the HTTP interface. The returned function says goodbye. */
  announce(httpPort: number, isAllowed: () => boolean): () => void;
}

/** Creates the media server. `deviceId` has 40 hexadecimal digits; `machineName` tells several engines apart. */
export function createDlnaServer(
  runtime: Pick<Runtime, "net" | "clock" | "surroundings">,
  { deviceInterfaces }: Pick<Config, "deviceInterfaces">,
  {
    deviceId,
    machineName,
    log,
  }: { readonly deviceId: string; readonly machineName: string; readonly log: Log },
): DlnaServer {
  const udn = `uuid:${deviceId.slice(0, 32).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")}`;
  const name = machineName === "" ? "Sluice" : `Sluice (${machineName})`;
  return {
    mediaServer: createMediaServer({ udn, name, version: VERSION }, runtime.clock.unixSeconds()),
    announce: (port, isAllowed) =>
      announceMediaServer({
        ...{ runtime, interfaces: deviceInterfaces, udn, isAllowed, log },
        locationAt: (host) => `http://${addressText({ host, port })}/dlna/description.xml`,
      }),
  };
}
