"""Ctrl-C at a moment of one's choice."""

import dis
import functools
import gc
import signal
import sys

_LOOKS = {"CALL", "CALL_FUNCTION_EX", "CALL_KW", "JUMP_BACKWARD", "RESUME"}
"""The bytecodes at whose end CPython looks whether a signal came."""


def interrupted_at(number, work):
    """Do some work, with a Ctrl-C when CPython looks for signals the ``number``-th time; whether it came to that."""
    left = number
    last = {}

    def trace(frame, event, _argument):
        nonlocal left
        frame.f_trace_opcodes = True
        if event == "opcode":
            looks = last.get(id(frame)) in _LOOKS
            last[id(frame)] = _names(frame.f_code)[frame.f_lasti]
            if looks and (left := left - 1) == 0:
                signal.raise_signal(signal.SIGINT)
        elif event == "return":
            last.pop(id(frame), None)
        return trace

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()  # a finalizer would swallow the interrupt
    # CPython 3.12 tells of no bytecode unless a frame asked before tracing began.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return left <= 0


@functools.cache
def _names(code):
    return {one.offset: one.opname for one in dis.get_instructions(code)}
