// The one door to the vendored libraries: everything else on the page imports them from here.
export {
  h, html, render, Component, createContext, useState, useReducer, useEffect, useLayoutEffect, useRef, useMemo,
  useCallback, useContext,
} from "./vendor/htm/standalone.module.js";
