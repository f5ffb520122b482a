// A name for this tab that survives a reload: sessionStorage belongs to one tab.
// (crypto.randomUUID exists on https and localhost only; a lecture hall uses neither.)
export default function ({ data: known, setStateValue }) {
  if (known) return
  let name = sessionStorage.getItem("nanatomy-tab")
  if (!name) {
    name = Array.from(crypto.getRandomValues(new Uint32Array(4)), n => n.toString(36)).join("")
    sessionStorage.setItem("nanatomy-tab", name)
  }
  setStateValue("name", name)
}
