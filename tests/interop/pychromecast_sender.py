"""Controls a Chromecast at 127.0.0.1:PORT with pychromecast, and prints what it reports as JSON."""
import json
import sys
import time
import uuid

import pychromecast

cast = pychromecast.get_chromecast_from_host(("127.0.0.1", int(sys.argv[1]), uuid.UUID(int=1), "Chromecast", "Den"))
cast.wait(timeout=20)
media = cast.media_controller
media.play_media(
    "http://127.0.0.1/film.m3u8",
    "application/vnd.apple.mpegurl",
    title="Film",
    stream_type="BUFFERED",
    subtitles="http://127.0.0.1/1.vtt",
)
media.block_until_active(timeout=8)
if not media.session_active_event.is_set():
    sys.exit("pychromecast did not load")
reports = []


def report(state, seconds):
    """Waits until the device reports this state and position; the answers arrive on another thread."""
    for _ in range(200):
        media.update_status()
        time.sleep(0.1)
        if media.status.player_state == state and media.status.current_time == seconds:
            break
    reports.append([media.status.player_state, media.status.current_time, media.status.duration])


report("PLAYING", 0)
media.pause()
report("PAUSED", 0)
media.seek(61)
# A seek starts the playback again.
report("PLAYING", 61)
cast.set_volume(0.25)
cast.quit_app()
print(json.dumps({"reports": reports, "url": media.status.content_id}))
cast.disconnect(timeout=5)
