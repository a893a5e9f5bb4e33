// WebTorrent's tracker for tests, over WebSockets only; prints its port and the announces it receives.
import { Server } from "bittorrent-tracker";

const say = (fields) => console.log(JSON.stringify(fields));
const server = new Server({ http: false, udp: false, ws: true, stats: false });
server.on("error", (error) => say({ event: "error", text: String(error) }));
server.on("warning", (error) => say({ event: "warning", text: String(error) }));
for (const event of ["start", "stop", "complete", "update"])
  server.on(event, (peerId) => say({ event, peerId }));
server.listen(0, "127.0.0.1", () => say({ event: "listening", port: server.ws.address().port }));
