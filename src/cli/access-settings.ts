import type { AccessSettings } from "../../routes/house.ts";
import type { Config } from "../settings.ts";

/** What the settings and the name of this machine say of who may ask. */
export function accessSettings(config: Config, machineName: string): Required<AccessSettings> {
  const { trustedProxies, intranetNetworks, allowedOrigins } = config;
  return { ownNames: namesOf(machineName), trustedProxies, intranetNetworks, allowedOrigins };
}

/** `nas.example.org` is called so, `nas` by its neighbours, and `nas.local` by multicast DNS (RFC 6762). */
function namesOf(machineName: string): string[] {
  const whole = machineName.toLowerCase();
  const short = whole.split(".")[0]!;
  return short === "" ? [] : [...new Set([whole, short, `${short}.local`])];
}
