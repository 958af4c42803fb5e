// Looks at a page as WCAG 2.2 AA does, as far as a machine can; evaluates to a list of what is wrong with it.
() => {
  const faults = [];
  const shown = (element) => {
    const { visibility, display } = getComputedStyle(element);
    const { width, height } = element.getBoundingClientRect();
    return visibility === "visible" && display !== "none" && width > 1 && height > 1 && !element.closest(".unseen");
  };
  const called = (element) => `${element.tagName.toLowerCase()}${element.id ? `#${element.id}` : ""}.${element.className?.baseVal ?? element.className}`;

  // Colours as the screen has them: whatever the style sheet calls them, a canvas knows red, green and blue.
  const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = colour;
    pixel.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = pixel.getImageData(0, 0, 1, 1).data;
    return { channels: [red, green, blue], alpha: alpha / 255 };
  };
  const over = (top, under) => under.map((channel, at) => top.channels[at] * top.alpha + channel * (1 - top.alpha));
  const ground = (element) => {
    const own = rgba(getComputedStyle(element).backgroundColor);
    if (own.alpha > 0.99) return own.channels;
    return over(own, element.parentElement ? ground(element.parentElement) : [255, 255, 255]);
  };
  const luminance = (channels) => {
    const [red, green, blue] = channels.map((channel) => {
      const part = channel / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const demand = (element, colour, under, least) => {
    const found = contrast(over(rgba(colour), under), under);
    if (found < least) faults.push(`contrast of ${called(element)} is ${found.toFixed(2)}, less than ${least}`);
  };

  let texts = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const isOff = element.closest("[aria-disabled=true], noscript, script, option");
    if (!walker.currentNode.data.trim() || isOff || !shown(element) || element.closest("svg")) continue;
    texts += 1;
    demand(element, getComputedStyle(element).color, ground(element), 4.5);
  }
  // The page of the coin world has a board on which colours are colours of things.
  const board = document.getElementById("board");
  if (texts < (board ? 40 : 10)) faults.push(`only ${texts} texts were looked at`);
  const fields = [...document.querySelectorAll(".field")].slice(0, 1).map((one) => getComputedStyle(one).fill);
  for (const under of board ? [getComputedStyle(board).backgroundColor, ...fields] : []) {
    for (const mark of document.querySelectorAll(".mark")) demand(mark, getComputedStyle(mark).fill, rgba(under).channels, 4.5);
    for (const token of document.querySelectorAll(".token")) demand(token, getComputedStyle(token).backgroundColor, rgba(under).channels, 3);
    // A coin is told from the ground by its edge.
    for (const edge of [...document.querySelectorAll(".edge")].slice(0, 1)) demand(edge, getComputedStyle(edge).fill, rgba(under).channels, 3);
  }

  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const id of new Set(ids)) if (ids.filter((other) => other === id).length > 1) faults.push(`id ${id} is there twice`);
  for (const attribute of ["aria-labelledby", "aria-describedby", "for"]) {
    for (const element of document.querySelectorAll(`[${attribute}]`)) {
      for (const id of element.getAttribute(attribute).split(" ")) {
        if (!ids.includes(id)) faults.push(`${called(element)} names ${id}, which is not there`);
      }
    }
  }
  for (const inside of document.querySelectorAll("[aria-hidden=true] :is(a, button, input, select, [tabindex])")) {
    faults.push(`${called(inside)} can be reached, though it is hidden`);
  }
  for (const image of document.querySelectorAll("img:not([alt])")) faults.push(`${called(image)} has no alt`);
  // Elsewhere a link stands in a line of text, which is as high as it is.
  const controls = board ? "a, #controls button, #controls select, #close, #list li" : "button, .button, select, nav li a, input:not([type=checkbox])";
  for (const control of document.querySelectorAll(controls)) {
    const { width, height } = control.getBoundingClientRect();
    if (shown(control) && (width < 24 || height < 24)) faults.push(`${called(control)} is ${width} x ${height}, too small to hit`);
  }
  // What a box cuts off is in its title, or can be scrolled to.
  for (const element of board ? [] : document.body.querySelectorAll("*:not(svg, svg *, input, select, textarea)")) {
    const { overflowX, overflowY } = getComputedStyle(element);
    const isCut = (overflow, size, room) => ["hidden", "clip"].includes(overflow) && size > room + 1;
    const cuts = isCut(overflowX, element.scrollWidth, element.clientWidth) || isCut(overflowY, element.scrollHeight, element.clientHeight);
    if (cuts && shown(element) && !element.title) faults.push(`${called(element)} cuts off ${element.textContent.slice(0, 40)}`);
    if (element.tagName === "TD" && !shown(element) && element.textContent.trim()) faults.push(`${called(element)} hides ${element.textContent.trim()}`);
  }
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].filter((one) => !one.closest("[hidden]")).map((one) => Number(one.tagName[1]));
  if (levels.filter((level) => level === 1).length !== 1) faults.push("there is not one h1");
  levels.forEach((level, at) => at && level > levels[at - 1] + 1 && faults.push(`h${level} follows h${levels[at - 1]}`));
  if (!document.documentElement.lang) faults.push("the language is not said");
  for (const one of ["header", "main", "title"]) if (!document.querySelector(one)) faults.push(`there is no ${one}`);
  return faults;
};
