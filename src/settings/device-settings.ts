import { anyText, choice, onOff } from "./kinds.ts";
import { setting } from "./setting.ts";

/** Settings of players and of devices of the local network. */
export function deviceSettings() {
  return {
    casting: setting(
      "casting",
      onOff(),
      "on",
      "Find televisions and players of the local network (DLNA, Chromecast, Kodi) when a client asks for players",
    ),
    dlna: setting(
      "dlna",
      onOff(),
      "off",
      "Appear as a DLNA media server to televisions and players of the local network, with playlist and recordings",
    ),
    deviceInterfaces: setting(
      "device-interfaces",
      anyText("INTERFACES"),
      "",
      "Interfaces on which devices are searched and served, such as eth0,wlan0; containers and VPNs only if they are named here",
      "all local networks",
    ),
    localPlayers: setting(
      "local-players",
      choice("local", "intranet"),
      "local",
      "Which clients may open players on this computer: only this host, or its network too",
    ),
  } as const;
}
