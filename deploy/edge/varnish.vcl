vcl 4.1;
# Varnish in front of one or more engines: it serves the viewers, and each engine makes each segment once.
# docs/cluster.md explains it. CHANGE: the addresses of the engines.

import directors;

backend engine1 { .host = "127.0.0.1"; .port = "6878"; .first_byte_timeout = 60s; .connect_timeout = 2s; }

sub vcl_init {
    # Requests for the same content go to the same engine; if it fails, to another one.
    new engines = directors.shard();
    engines.add_backend(engine1);
    engines.reconfigure();
}

sub vcl_recv {
    if (req.url !~ "^/(live|vod)/[0-9A-Fa-f]{40}/") {
        return (synth(404));
    }
    set req.http.X-Sluice-Content = regsub(req.url, "^(/[a-z]+/[^/]+)/.*", "\1");
    set req.backend_hint = engines.backend(by=KEY, key=engines.key(req.http.X-Sluice-Content));
    # The engines answer to `localhost` with their own port, and to the names in --allowed-hosts.
    set req.http.Host = "localhost:6878";
    unset req.http.Cookie;
    unset req.http.Origin;
    unset req.http.Referer;
    return (hash);
}

sub vcl_backend_response {
    # While one request renews a manifest, the others get the last one. Requests for the same segment wait for the first one.
    set beresp.grace = 10s;
    if (beresp.status >= 400) {
        set beresp.ttl = 0s;
        set beresp.grace = 0s;
    }
}
