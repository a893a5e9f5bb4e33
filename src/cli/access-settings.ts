import type { AccessSettings } from "../../routes/http/dependencies.ts";
import type { Config } from "../settings/settings.ts";

/** Returns who may use the interface. `machineName` is the host name of this machine. */
export function accessSettings(config: Config, machineName: string): Required<AccessSettings> {
  const { trustedProxies, intranetNetworks, allowedOrigins } = config;
  return { ownNames: namesOf(machineName), trustedProxies, intranetNetworks, allowedOrigins };
}

/**
 * `nas.example.org` is also called `nas`, `nas.local` in multicast DNS (RFC 6762), and `nas.home.arpa` (RFC 8375) or `nas.lan`
 * by home routers. No site of the Internet can have the last three names.
 */
function namesOf(machineName: string): string[] {
  const whole = machineName.toLowerCase();
  const short = whole.split(".")[0]!;
  return short === ""
    ? []
    : [...new Set([whole, short, ...["local", "home.arpa", "lan"].map((end) => `${short}.${end}`)])];
}
