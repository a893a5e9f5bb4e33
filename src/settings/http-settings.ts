import { anyText, choice, hostNames, integer, networkList, originList, secretText, text } from "./kinds.ts";
import { setting } from "./setting.ts";

/** Settings of the HTTP interface: its address, and who may use it. */
export function httpSettings() {
  return {
    host: setting(
      "host",
      text("ADDRESS", "an IP address or a name of this machine"),
      "::",
      "Address that the HTTP interface listens on; :: means all networks of this machine, 127.0.0.1 this machine only",
    ),
    httpPort: setting(
      "http-port",
      integer("PORT", 0, 65535),
      6878,
      "Port of the HTTP interface; 0 chooses a free port",
    ),
    tcpApiPort: setting(
      "tcp-api-port",
      integer("PORT", 0, 65535),
      0,
      "Port of the TCP API of older engines, for programs that need it (62062); 0 turns it off",
    ),
    allowedHosts: setting(
      "allowed-hosts",
      hostNames(),
      [],
      "More host names and addresses that requests may use for this engine, such as tv.lan or tv.lan:80",
      "none",
    ),
    intranetNetworks: setting(
      "intranet-networks",
      networkList(),
      [],
      "More networks that count as the local subnet, such as 192.168.0.0/16",
      "none",
    ),
    trustedProxies: setting(
      "trusted-proxies",
      networkList(),
      [],
      "Reverse proxies whose X-Forwarded-For, -Proto and -Host headers are trusted",
      "none",
    ),
    allowedOrigins: setting(
      "allowed-origins",
      originList(),
      [],
      "Other web origins that may call the interface with an access token, such as https://tv.example",
      "none",
    ),
    accessToken: setting(
      "access-token",
      secretText("TOKEN", 32),
      "",
      "Access token of the control interface; if empty, the engine generates one and keeps it",
      "none",
    ),
    googleIssuer: setting(
      "google-issuer",
      anyText("URL"),
      "https://accounts.google.com",
      "Issuer of the ID tokens that are accepted for sign-in",
    ),
    googleAudience: setting(
      "google-audience",
      anyText("CLIENT_ID"),
      "",
      "Required audience of ID tokens; if empty, sign-in with ID tokens is off",
      "none",
    ),
    googleKeysUrl: setting(
      "google-keys-url",
      anyText("URL"),
      "https://www.googleapis.com/oauth2/v3/certs",
      "URL of the public keys of that issuer",
    ),
    privateUrls: setting(
      "private-urls",
      choice("local", "intranet"),
      "local",
      "Which clients may request URLs, trackers and peers at private addresses: only this host, or its network too",
    ),
    maxHttpConnections: setting(
      "max-http-connections",
      integer("COUNT", 8, 65535),
      256,
      "Maximum number of HTTP connections; beyond it, idle and unread connections are closed",
    ),
  } as const;
}
