import { duration, engineAddress, onOff, secretText } from "./kinds.ts";
import { setting } from "./setting.ts";

/** Settings of several engines that share a database on a server. */
export function clusterSettings() {
  return {
    clusterAddress: setting(
      "cluster-address",
      engineAddress(),
      "",
      "URL at which players and the other engines of the same database reach this one, such as http://10.0.0.5:6878; without it this engine gets no players of others",
    ),
    clusterProxy: setting(
      "cluster-proxy",
      onOff(),
      "off",
      "Fetch content that another engine plays from that engine, instead of sending the player there; the engines must list each other in --trusted-proxies",
    ),
    linkKey: setting(
      "link-key",
      secretText("KEY", 32),
      "",
      "Key of signed links: with it, /live/ and /vod/ are served only to links that `sign_link` has made",
    ),
    drainTime: setting(
      "drain-time",
      duration(0),
      0,
      "When the engine is stopped: how long it sends new players to other engines and waits for its players to leave",
    ),
  } as const;
}
