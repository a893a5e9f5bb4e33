import { addressScope, canonicalAddress } from "../base/address.ts";
import type { DiagnosisRow } from "../base/diagnosis.ts";
import type { Config } from "../settings/settings.ts";

/** Below this upload, most peers send little in return. */
const LITTLE_UPLOAD_BYTES_PER_SECOND = 20_000;

/**
 * Returns a row for each combination of settings that conflicts or has surprising effects. `statReader` is the user agent of a
 * program that reads the status of sessions.
 */
export function settingRows(config: Config, statReader?: string): DiagnosisRow[] {
  const rows = [
    ...[upload(config), ways(config), proxied(config), memory(config), ports(config), doors(config)],
    statusWords(config, statReader),
  ];
  const found = rows.filter((row) => row !== undefined);
  if (found.length > 0) return found;
  return [{ name: "Settings", level: "ok", text: "No conflicts." }];
}

function row(text: string, advice: string, level: DiagnosisRow["level"] = "warn"): DiagnosisRow {
  return { name: "Settings", level, text, advice };
}

function upload({ uploadLimit }: Config): DiagnosisRow | undefined {
  if (uploadLimit === 0 || uploadLimit >= LITTLE_UPLOAD_BYTES_PER_SECOND) return undefined;
  return row(
    "The upload limit is so low that peers have little reason to send data.",
    "Raise --upload-limit to about a tenth of the line's upload.",
  );
}

/** Browsers and players read no status, or know both words. */
const CONTROLLING_PROGRAM =
  /^(?:python|go-http-client|okhttp|node|axios|java|dart|ruby|curl|libcurl|kodi|aio)/i;

function statusWords({ compat }: Config, statReader: string | undefined): DiagnosisRow | undefined {
  if (compat === "deployed" || !CONTROLLING_PROGRAM.test(statReader ?? "")) return undefined;
  return row(
    `A program (${statReader}) reads the status of sessions. Programs written for other engines may wait for a status word that is not documented.`,
    "If that program never starts its player, use --compat deployed.",
    "note",
  );
}

function ways({ dht, lsd, trackers }: Config): DiagnosisRow | undefined {
  if (dht === "on" || lsd === "on" || trackers.length > 0) return undefined;
  return row(
    "The DHT and local discovery are off, so content without trackers in its link is never found.",
    "Use --dht on, or add trackers with --trackers.",
    "note",
  );
}

function proxied({ proxy, proxyStrict, portMapping, lsd }: Config): DiagnosisRow | undefined {
  if (proxy === "") return undefined;
  if (proxyStrict === "off")
    return row(
      "Traffic that the proxy cannot carry bypasses it and reveals the address of this machine.",
      "Use --proxy-strict on to hide the address.",
    );
  if (portMapping === "off" && lsd === "off") return undefined;
  return row(
    "With a strict proxy, port mapping and local discovery do not run.",
    "No action is needed; --port-mapping off and --lsd off have the same effect.",
    "note",
  );
}

function memory({ memoryLimit, downloadLimit, maxConnections }: Config): DiagnosisRow | undefined {
  if (downloadLimit > 0 || memoryLimit / maxConnections >= 64 * 1024) return undefined;
  return row(
    "The memory for pieces is small for this number of connections.",
    "Raise --memory-limit, or lower --max-connections.",
    "note",
  );
}

function ports({ portFile, portCommand, portMapping }: Config): DiagnosisRow | undefined {
  if (portFile !== "" && portCommand !== "")
    return row("Both a file and a command set the port.", "Remove --port-file or --port-command.");
  if ((portFile === "" && portCommand === "") || portMapping === "off") return undefined;
  return row(
    "The port comes from a file or command, so port mapping does not run.",
    "No action is needed; --port-mapping off has the same effect.",
    "note",
  );
}

function doors({ host, trustedProxies }: Config): DiagnosisRow | undefined {
  const address = canonicalAddress(host);
  const isOpen = address !== undefined && addressScope(address) === "global";
  if (!isOpen || trustedProxies.length > 0) return undefined;
  return row(
    `The HTTP interface listens on ${host}, a public address.`,
    "Listen on an address of the local network (--host), or use a reverse proxy with TLS.",
  );
}
