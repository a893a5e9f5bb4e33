import { createSocket } from "node:dgram";
import { createServer } from "node:http";

// Listens on the given ports of all addresses and prints a line for each connection, datagram and request. Its responses
// lead the client to the URL in the parameter `to`.

const MANIFEST = "application/vnd.apple.mpegurl";

for (const port of process.argv.slice(2).map(Number)) {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://canary");
    console.log(`REQUEST ${port} ${request.socket.localAddress} ${request.url}`);
    const to = url.searchParams.get("to") ?? "";
    switch (url.pathname) {
      case "/redirect":
        response.writeHead(302, { location: to }).end();
        break;
      case "/master.m3u8":
        response.setHeader("content-type", MANIFEST);
        response.end(`#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n${to}\n`);
        break;
      case "/media.m3u8":
        response.setHeader("content-type", MANIFEST);
        response.end(
          `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-KEY:METHOD=AES-128,URI="${to}"\n#EXT-X-MAP:URI="${to}"\n#EXTINF:2,\n${to}\n#EXT-X-ENDLIST\n`,
        );
        break;
      case "/split.m3u8":
        response.setHeader("content-type", MANIFEST);
        response.end(
          `#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",URI="${to}"\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\n/media.m3u8?to=x\n`,
        );
        break;
      default:
        response.end("x");
    }
  });
  server.on("connection", (socket) => console.log(`HIT ${port} tcp ${socket.localAddress}`));
  server.listen(port, "::", () => console.log(`listening ${port}`));
  const udp = createSocket("udp6");
  udp.on("message", (_, { address }) => console.log(`HIT ${port} udp from ${address}`));
  udp.bind(port, "::");
}
