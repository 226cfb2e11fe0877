"""Ctrl-C in a write: nothing is left halfway, and nobody waits for whom it stopped."""

import random
import signal
import threading

from tests.interrupting import interrupted_at


def test_ctrl_c_anywhere_in_a_write_leaves_nothing_halfway_and_holds_up_no_other_thread(path, write, sound):
    draw, heard, number = random.Random(7), 0, 1

    def write_here():
        write(path, "here.md", str(number))

    def write_elsewhere():
        write(path, "elsewhere.md", str(number))

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        while True:
            try:
                if not interrupted_at(number, write_here):
                    break
            except KeyboardInterrupt:  # while its traceback is at hand, and with it every frame
                heard += 1
                thread = threading.Thread(target=write_elsewhere)
                thread.start()
                thread.join(10)
                assert not thread.is_alive()
            number += draw.randrange(1, 60)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard > 20
    path.flush()
    sound()
