// Scrolls the page and whatever scrolls most inside it to the end, a window at a time, so that all that loads lazily does.
// Answers how far that was.
(async () => {
  const boxes = [document.scrollingElement ?? document.documentElement];
  const inside = [...document.querySelectorAll("body *")]
    .filter(e => e.scrollHeight > e.clientHeight + 100 && /auto|scroll/.test(getComputedStyle(e).overflowY))
    .sort((a, b) => b.scrollHeight - a.scrollHeight);
  boxes.push(...inside.slice(0, 3));
  // A page that is not painted has no frames.
  const frame = () => new Promise(done => { requestAnimationFrame(done); setTimeout(done, 100); });
  let far = 0;
  for (const box of boxes) {
    box.scrollIntoView({ behavior: "instant" });
    for (let y = 0, steps = 0; y < box.scrollHeight && steps < 100; y += Math.max(innerHeight, 200), steps++) {
      box.scrollTo({ top: y, behavior: "instant" });
      await frame();
      await frame();
    }
    far += box.scrollHeight;
  }
  boxes.reverse().forEach(box => box.scrollTo({ top: 0, behavior: "instant" }));
  return far;
})()
