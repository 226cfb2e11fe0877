/* Search without a server. A page opened from disk (file:) may not start a worker; this runs the worker's script in a
   hidden frame instead. Material for MkDocs would load such a script from a CDN; the site must not need a network. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      this.onmessage = null
      this.window = frame.contentWindow
      this.loaded = new Promise(resolve => { this.resolve = resolve })
      this.receive = event => {
        if (event.source !== this.window) return
        if (event.data === "iframe-worker: loaded") return this.resolve()
        const copy = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(copy)
        if (this.onmessage) this.onmessage(copy)
      }
      addEventListener("message", this.receive)
      this.window.document.open()
      this.window.document.write(`<!doctype html><script>
        self.postMessage = data => parent.postMessage(data, "*")
        self.importScripts = (...urls) => urls.reduce((done, url) => done.then(() => new Promise((resolve, reject) => {
          const script = document.createElement("script")
          script.src = url
          script.onload = resolve
          script.onerror = reject
          document.body.appendChild(script)
        })), Promise.resolve())
      <\/script><body><script src="${url}"><\/script><script>postMessage("iframe-worker: loaded")<\/script>`)
      this.window.document.close()
    }

    postMessage(data) {
      this.loaded.then(() => this.window.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {
      removeEventListener("message", this.receive)
      this.window.frameElement.remove()
    }
  }
}
