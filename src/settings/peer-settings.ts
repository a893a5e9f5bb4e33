import {
  anyText,
  choice,
  integer,
  ipAddress,
  nodeList,
  onOff,
  proxyUrl,
  rate,
  schedule,
  trackerList,
} from "./kinds.ts";
import { setting } from "./setting.ts";

/** Settings of the peer network: ports, limits, finding peers, VPN and proxy. */
export function peerSettings() {
  return {
    p2pHost: setting(
      "p2p-host",
      ipAddress(),
      "::",
      "Address that accepts peer connections; :: means IPv6 and IPv4, or only IPv4 if the system has no IPv6",
    ),
    p2pPort: setting(
      "p2p-port",
      integer("PORT", 0, 65535),
      8621,
      "Port that accepts peer connections (TCP and UDP); 0 chooses a free port",
    ),
    maxConnections: setting(
      "max-connections",
      integer("COUNT", 1, 2000),
      200,
      "Maximum number of peer connections",
    ),
    uploadLimit: setting(
      "upload-limit",
      rate(),
      0,
      "Maximum upload to peers in bytes per second; 0 means no limit",
    ),
    downloadLimit: setting(
      "download-limit",
      rate(),
      0,
      "Maximum download from peers in bytes per second; 0 means no limit",
    ),
    limitLan: setting("limit-lan", onOff(), "on", "Apply the rate limits on the local network too"),
    schedule: setting(
      "schedule",
      schedule(),
      undefined,
      "Daily period with other rate limits, such as 22:00-06:30 up=0 down=2MB",
      "none",
    ),
    trackers: setting("trackers", trackerList(), [], "Trackers for content whose link names none", "none"),
    dht: setting("dht", onOff(), "on", "Find peers through the DHT, without a tracker"),
    dhtNodes: setting(
      "dht-nodes",
      nodeList(),
      ["router.bittorrent.com:6881", "dht.transmissionbt.com:6881", "dht.libtorrent.org:25401"],
      "DHT bootstrap nodes for the first start; later starts use the nodes they know",
    ),
    lsd: setting("lsd", onOff(), "on", "Find peers on the local network (local service discovery)"),
    utp: setting("utp", onOff(), "on", "Connect to peers over uTP (UDP) if TCP fails or is slower"),
    encryption: setting(
      "encryption",
      choice("allow", "prefer", "require", "off"),
      "allow",
      "Peer encryption: allow connects unencrypted first, prefer connects encrypted first, require and off allow one kind",
    ),
    portMapping: setting(
      "port-mapping",
      onOff(),
      "on",
      "Ask the router to forward the peer port (UPnP, NAT-PMP, PCP)",
    ),
    bind: setting(
      "bind",
      anyText("INTERFACE"),
      "",
      "Interface (such as wg0) or address that carries all peer, tracker and DHT traffic",
      "any",
    ),
    proxy: setting(
      "proxy",
      proxyUrl(),
      "",
      "Proxy for peers and trackers: socks5://[user:password@]host:port or http://…",
      "none",
    ),
    proxyStrict: setting(
      "proxy-strict",
      onOff(),
      "on",
      "With a proxy, send nothing outside it: traffic that the proxy cannot carry is dropped",
    ),
    portFile: setting(
      "port-file",
      anyText("FILE"),
      "",
      "File with the port that peers must connect to, as VPN programs write it; changes are followed",
      "none",
    ),
    portCommand: setting(
      "port-command",
      anyText("COMMAND"),
      "",
      "Command that prints the port that peers must connect to; runs every minute",
      "none",
    ),
    ipFilter: setting(
      "ip-filter",
      anyText("FILE"),
      "",
      "List of blocked addresses (P2P or CIDR format)",
      "none",
    ),
    tracker: setting(
      "tracker-server",
      choice("off", "own", "open"),
      "off",
      "Run a tracker at /announce and on the peer port: for broadcasts of this engine (own) or any content (open)",
    ),
  } as const;
}
