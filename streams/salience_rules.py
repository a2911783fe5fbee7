"""The patterns behind `lamina.streams.salience`: what a salient English sentence looks like, by rule.

Written for precision, but for `safety`: a stated allergy, illness or medicine is never to be missed, so its
lists are long. Each pattern is tried against one sentence, case ignored, from any place unless anchored.
"""

import re

_WHO = (
    r"(?:i|we|he|she|they|(?:my|our|his|her|their|the) (?:[a-z]+ ){0,2}[a-z]+|(?!(?:It|This|That|These"
    r"|Those|There|What"
    r"|Who|How|Here|Everything|Something|Which|You)\b)(?-i:[A-Z])[a-z]+)"
)
_BE = r"(?:'m|'s|'re| am| is| are| was| were|'ve been| have been| has been)"
_ILLNESS = (
    r"(?:diabet\w+|epilep\w+|asthma\w*|seizures?|an? (?:\w+ )?(?:heart|kidney|liver|lung"
    r"|thyroid) (?:condition"
    r"|disease|problem|failure|murmur)|(?:heart|kidney|liver) (?:condition|disease|problems?|failure)"
    r"|high blood pressure|low blood pressure|hypertension|cancer|leukemia|leukaemia|lymphoma"
    r"|a (?:brain )?tumou?r"
    r"|hiv\b|aids\b|hepatitis|parkinson'?s|alzheimer'?s|dementia|crohn'?s|ulcerative colitis|lupus"
    r"|multiple sclerosis|arthritis|h(?:a)?emophilia\w*|arrhythmia|atrial fibrillation|copd\b|sickle cell"
    r"|cystic fibrosis|a pacemaker|an insulin pump|adhd\b|autis\w+|ptsd\b|(?:clinical |severe "
    r"|chronic |bipolar )"
    r"(?:depression|disorder|pain|anxiety|fatigue|migraines?|disease|illness|condition)|an? eating disorder"
    r"|bipolar|schizophreni\w+|c(?:o)?eliac\w*|osteoporosis|gout\b|heart attacks?|(?:a "
    r"|mini-)strokes?\b|blood clots?"
    r"|an? (?:\w+ )?(?:allergy|intolerance)|(?:\w+ )?(?:allergies|intolerances)|sleep apn(?:o)?ea"
    r"|endometriosis"
    r"|g6pd|phenylketonuria|an(?:a)?emia|an? (?:weak|compromised) immune system)"
)
_MEDICINE = (
    r"(?:(?:a |an |my |some |the |daily |high dose of |low dose of |\d+ ?mg (?:of )?)*(?:warfarin"
    r"|insulin|lithium"
    r"|aspirin|heparin|metformin|prednison?e?|methotrexate|digoxin|levothyroxine|sertraline|fluoxetine"
    r"|prozac"
    r"|zoloft|xanax|adderall|ritalin|ibuprofen|antibiotics?|antidepressants?|antihistamines?"
    r"|beta[- ]blockers?"
    r"|blood[- ]thinners?|anticoagulants?|statins?|steroids?|immunosuppress\w+|chemo\w*|dialysis"
    r"|painkillers?"
    r"|opioids?|codeine|morphine|oxycodone|tramadol|albuterol|inhalers?|paracetamol|acetaminophen"
    r"|tylenol|advil|eliquis"
    r"|xarelto|coumadin|plavix|lipitor|synthroid|humira|ozempic|lexapro|penicillin|sulfa drugs|nsaids?"
    r"|methadone|birth control|prep\b|maois?|ssris?|\w{3,}(?:olol|pril|sartan|statin|xaban|cillin|mycin"
    r"|cycline|floxacin|oxetine|azepam|zolam|prazole|formin|gliptin|triptan|dipine|tidine|lukast|sone"
    r"|mab|tinib)"
    r"|(?:\w+ ){0,3}(?:medication|medications|meds|pills|tablets|injections)))\b"
)
_FOOD = (
    r"(?:dairy|gluten|nuts?|peanuts?|meat|pork|beef|chicken|fish|shellfish|seafood|eggs?|milk|lactose"
    r"|sugar|alcohol"
    r"|caffeine|coffee|wheat|soy|bread|spicy|raw|red meat|shrimp|prawns?|cheese|honey|gelatin|anything)"
)
_JOKE = (
    r"(?!\s+(?:to )?(?:mondays?|mornings?|drama|work|working|bullshit|commitment|exercise|effort|stupid\w*"
    r"|math))"
)
# Words of illness that are hardly ever figures of speech: beside a person, in a statement, they are enough.
_STRONG = (
    r"(?:anaphyla\w+|epi-?pens?|asthma\w*|epilep\w+|diabet\w+(?!-)|seizures?|insulin|warfarin"
    r"|transplant(?:ed)?"
    r"|(?:in|into) remission|dialysis|c(?:o)?eliac|immunocompromised|h(?:a)?emophil\w+|lupus"
    r"|parkinson'?s|alzheimer'?s"
    r"|dementia|crohn'?s|multiple sclerosis|penicillin|amoxicillin|chemo(?:therapy)?|pacemaker"
    r"|\w+ deficien(?:t|cy)"
    r"|heart (?:defect|condition|failure|murmur|attack)|swell(?:s|ed) up|hospitali[sz]ed|doctor'?s orders)"
)
_PERSON = r"(?:i|i'm|i've|me|my|he|he's|him|his|she|she's|her|our|we|(?-i:[A-Z])[a-z]+'s)"
_SAFETY = (
    r"\bgets? (?:hives|a rash|seizures?|migraines?)\b",
    (
        rf"\b{_FOOD}\b.{{0,30}} (?:(?:is|are) dangerous (?:for|to) (?:me|him|her|us|my|our)|(?:they"
        rf"|it)(?:'d| would|'ll)"
        r" kill (?:me|him|her|us|my|our))\b"
    ),
    rf"^(?=.*\b{_PERSON}\b(?! laptop| computer| car\b)).*\b{_STRONG}\b",
    r"\b(?:nearly|almost) died (?:from|of|after)\b(?! (?:laugh|embarrass|bore|shame))",
    rf"\b{_MEDICINE} (?:sends?|sent|put) (?:me|him|her|them) (?:in|to|into)\b",
    (
        rf"\b{_WHO} (?:can't|cannot) be (?:near|around) (?:\w+ )?(?:cats?|dogs?|smoke|nuts|peanuts"
        rf"|perfumes?|horses)\b"
    ),
    rf"\ballergic(?:\s+to\b)?{_JOKE}",
    r"\b(?:allergic reactions?|anaphyla\w+|epi-?pens?)\b",
    (
        rf"\b{_WHO}(?:'ve|'s)?(?: also| both| all| just| really| actually)* (?:have|has|had|got|gets?"
        rf"|suffers? from"
        rf"|live[sd]? with|developed|carr(?:y|ies)|battl(?:e|es|ing)|ha(?:s|ve) got|ha(?:s|ve) had|ha(?:s"
        rf"|ve) a history"
        rf" of)(?: a| an| the| some| really| very| quite| bad| mild| severe| serious| life-threatening"
        rf"| chronic| type"
        rf"| gestational| [12]| one| two)* {_ILLNESS}"
    ),
    r"(?<!no )(?<!any )\ballerg(?:y|ies)\b(?! (?:season|friendly))",
    r"\b(?:severe|serious|life-threatening|deadly|bad) (?:\w+ )?reactions? to\b",
    rf"\b(?:for|because of|due to|with) (?:my|his|her|their|our \w+'s) (?:\w+ )?{_ILLNESS}",
    rf"\b(?:put|puts|started|keeps?|kept) (?:me|him|her|them|my \w+) on {_MEDICINE}",
    (
        rf"\b{_MEDICINE} (?:is|are|was|can be|could be) (?:very |really |extremely )?(?:dangerous|bad"
        rf"|off[- ]limits)\b"
    ),
    (
        r"\b(?:gives?|gave|giving) (?:me|him|her|them|us|my \w+|(?-i:[A-Z])[a-z]+) (?:\w+ ){0,2}(?:hives"
        r"|rash(?:es)?|seizures?"
        r"|migraines?|anaphyla\w+|palpitations|asthma attacks?)\b"
    ),
    (
        rf"\b{_WHO} (?:can't|cannot|can not|mustn't|must not|should never|can never|shouldn't) (?:have"
        rf"|take|tolerate|be given)"
        rf" {_MEDICINE}"
    ),
    rf"\breact(?:s|ed)? (?:\w+ )?to (?:{_FOOD}|{_MEDICINE}|\w+ stings?)\b",
    (
        r"\b(?:end(?:s|ed)? up|rushed|landed|hospitali[sz]ed) (?:in|to) (?:the )?(?:er|hospital"
        r"|emergency(?: room)?|icu|a&e)\b"
    ),
    (
        r"\b(?:eating|drinking|having|even) (?:\w+ ){1,5}(?:makes?|made) (?:me|him|her|them|us"
        r"|my \w+) (?:\w+ )?(?:sick|ill)\b"
    ),
    rf"\b(?:trace|bite|sip|drop|stings?|{_FOOD})(?: of \w+)? (?:will|would|could|can) kill\b",
    r"\b(?:i'd|i'll|he'd|she'd|we'd) end up in (?:the )?(?:hospital|er|emergency room)\b",
    r"\b(?:diagnosed (?:\w+ )?(?:with|as)|diagnosis (?:is|was)|tested positive for)\b",
    (
        rf"\b{_WHO}{_BE}(?: also| both| a| an| all| now| severely| highly| very| mildly| legally| type"
        rf"| currently"
        r"| [12]| one| two| insulin-dependent)* (?:diabetic|epileptic|asthmatic|h(?:a)?emophiliac"
        r"|c(?:o)?eliac|pregnant"
        r"|immunocompromised|immuno-?suppressed|hiv[- ]positive|deaf|blind(?! to)|colou?r-?blind"
        r"|anemic|anaemic"
        r"|suicidal"
        r"|bipolar|autistic|(?:\w+[- ])?intolerant|prediabetic|hypertensive|on dialysis)\b(?!-)"
    ),
    rf"\b{_WHO}{_BE}(?: also| now| currently| still| already| just| back| put| been)* on {_MEDICINE}",
    (
        rf"\b{_WHO}(?:'m|'s|'re)?(?: also| still| now| currently| just| am| is| are| been| stopped"
        rf"| started| (?:have|has|had|need|needs) to)* (?:take|takes|taking|took|need"
        rf"|needs|use|uses|started|start|inject|injects|was prescribed|were prescribed|is prescribed"
        rf"|am prescribed)"
        rf"(?: a| an| my| his| her| daily| taking)* {_MEDICINE}"
    ),
    rf"\b(?:prescribed (?:me |him |her )?)(?:a |an |some )*{_MEDICINE}",
    (
        r"(?<!mom )(?<!mum )(?<!dad )(?<!wife )(?<!boss )(?<!husband )\b(?:could|can|might|may|nearly"
        r"|almost)"
        r" (?:literally |actually |seriously |easily )?(?:kill|killed) (?:me|him|her|us|them|my|our"
        r"|the (?:dog|cat|baby))\b"
    ),
    (
        r"\b(?:is|are|would be|could be|can be) (?:deadly|fatal|lethal|toxic|poisonous"
        r"|life-threatening) (?:for|to) (?:me|him"
        r"|her|us|them|my|our)\b"
    ),
    (
        r"\b(?:makes?|sends?) (?:my|his|her|their) (?:throat|tongue|face|airways?) (?:\w+ )?(?:swell|close"
        r"|into)"
    ),
    (
        rf"\b(?:{_WHO}|body) (?:can't|cannot|can not|doesn't|don't) (?:tolerate|digest|process) (?!the "
        rf"|this |that |it )\w+"
    ),
    (
        r"\b(?:my|his|her|their) blood type\b|\bdo not resuscitate\b|\bkill myself\b|\bend my life\b"
        r"|\bhurt myself\b"
    ),
    r"\b(?:my|his|her|their|'s) (?:throat|airways?|tongue) (?:swells?|closes?|closed|swelled)\b",
    r"\bgo(?:es)? into (?:anaphylactic )?shock\b|\bbr(?:eak|oke)s? out in (?:hives|a rash)\b",
    rf"\b{_WHO} carr(?:y|ies) (?:a |an |my |his |her )?{_MEDICINE}",
    rf"\btriggers? (?:my|his|her|their) (?:\w+ )?(?:{_ILLNESS}|migraines?|attacks?)",
    rf"\brecover(?:ing|ed)? from (?:\w+ )?(?:{_ILLNESS}|surgery)",
    r"\b(?:my|his|her) (?:kidneys?|heart|liver|lungs?) (?:is|are) (?:failing|weak)\b",
    r"\bbecause of (?:my|his|her|their) (?:medications?|meds|medical condition|condition|illness)\b",
    r"\b(?:he|she|they|i|my \w+) stops? breathing\b",
    (
        rf"\b(?:don't|do not|never) (?:ever )?give (?:me|him|her|them|my \w+"
        rf"|(?-i:[A-Z])[a-z]+) (?:any )?(?:{_MEDICINE}|{_FOOD}\b)"
    ),
)

_CONSTRAINT = (
    (
        rf"\b{_WHO} (?:can't|cannot|can not|can never|must not|mustn't|don't|do not|doesn't|does not|never"
        rf"|won't|no longer"
        rf"|am not allowed to|'m not allowed to|isn't allowed to|is not allowed to)(?: ever)? (?:eat|drink"
        rf"|have|consume|touch)"
        rf" (?:any )?{_FOOD}\b"
    ),
    (
        rf"\b{_WHO}(?: can't| cannot| can not| can never| must not| mustn't|{_BE}(?: not"
        rf"|n't) allowed to)(?: ever)?"
        r" (?:eat|drink|consume|fly|drive|swim|climb stairs|use stairs|lift|travel|work on|work (?:after"
        r"|before|past)|be"
        r" (?:called|reached|booked))\b(?! (?:it all|another|that much|enough|all|and))"
    ),
    (
        rf"\b{_WHO}{_BE}(?: a| an| strictly| strict| now| both| all| fully)* (?:vegan|vegetarian"
        rf"|pescatarian|teetotal(?:er|ler)?"
        r"|kosher|halal|sober)\s*(?:[.,!;]|$|and\b|but\b|so\b|now\b|since\b|for\b|because\b)"
    ),
    (
        r"\b(?:keeps? (?:kosher|halal)|(?:eat|eats) only (?:kosher|halal|vegan|vegetarian)|only (?:eat"
        r"|eats) (?:kosher|halal"
        r"|vegan|vegetarian))\b"
    ),
    (
        r"^(?:(?:please|pls|and|but|so|also|oh|just)[, ]+){0,3}(?:never(?: ever)?|don't ever|do not ever"
        r"|always|under no"
        r" circumstances|whatever you do,? (?:don't|never)) (?:book|schedule|call|contact|e-?mail|text"
        r"|message|send|use"
        r"|share|tell|order|buy|put|include|recommend|suggest|delete|deploy|push|merge|commit|reply|answer"
        r"|mention"
        r"|charge|touch|address|write|format|cc|invite|plan|cook|serve|add|disclose|reveal|log|store|run"
        r"|ship|ask"
        r"|confirm|check with|speak|translate|respond)\b"
    ),
    (
        r"^(?:(?:please|pls|and|but|so|also)[, ]+){0,2}(?:don't|do not) (?:call|contact|e-?mail|text"
        r"|message|book|schedule)"
        r" (?:me|us|him|her|anything|any|meetings?|calls?|flights?)\b"
    ),
    rf"\b{_WHO} (?:(?:have|has|need|needs) to )?(?:strictly |always )?avoids? {_FOOD}\b",
    r"\b(?:can't|cannot|won't|don't want to) (?:spend|pay|go over|exceed)(?: more than| over)? \W?\d",
    (
        r"\b(?:budget|rent|price|cost|spend\w*)\b.{0,40}\b(?:under|below|at most|no more than|maximum|max"
        r"|up to|capped at"
        r"|exceed|over|within)\b.{0,8}\d"
    ),
    (
        r"\b(?:must|has to|have to|needs? to) (?:be|stay|remain) (?:\w+ )?(?:wheelchair|step-?free"
        r"|gluten[- ]free|nut[- ]free"
        r"|dairy[- ]free|vegan|vegetarian|halal|kosher|confidential|under \W?\d|below \W?\d)"
    ),
    r"\bneeds? (?:a )?(?:wheelchair|step-?free)\b|\buses? a wheelchair\b",
)

_KIN = (
    r"(?:wife|husband|partner|fianc[ée]e?|girlfriend|boyfriend|son|daughter|sister|brother|mother"
    r"|father|mom|mum|dad"
    r"|boss|manager|dog|cat|puppy|kitten|doctor|therapist|grand(?:ma|pa|mother|father|son|daughter)"
    r"|baby|twins?|kids?"
    r"|children|aunt|uncle|cousin|nephew|niece|best friend|dentist|landlord|colleague|teacher)"
)
_CAP = r"(?-i:[A-Z][\w'-]+)"
_IDENTITY = (
    (
        rf"\b(?:my (?:full |first |last |real |middle |maiden )?name(?:'s| is)|(?:i'm|i am) (?:called"
        rf"|named)|i go by|call me)"
        rf" (?!(?:when|if|crazy|old|a|any|back|later|on|at|before|after|to)\b){_CAP}"
    ),
    (
        rf"\b(?:my|our) (?:\w+ )?{_KIN}(?:'s name (?:is|was)|s' names are|(?: is|'s| are| was) (?:called"
        rf"|named)|,? named"
        rf"|,? called) {_CAP}"
    ),
    (
        rf"\b(?:i|we)(?:'m| am|'re| are|'ve| have)?(?: now| currently| still| just| recently| actually"
        rf"| finally| both"
        rf"| all| originally)* (?:live|lived|living|moved|moving|relocated|relocating|come|came"
        rf"|grew up)(?: back| out| over"
        rf"| here| there)? (?:in|to|from|near|at|on) (?:the )?{_CAP}"
    ),
    rf"\b(?:i'm|i am|we're|we are)(?: originally| actually| also)? from {_CAP}",
    (
        r"\b(?:my|our) (?:home ?town|home country|native (?:country|language)|mother tongue|nationality"
        r"|address|religion"
        r"|blood type|zodiac sign|pronouns?|time ?zone)(?:'s| is| are)\b"
    ),
    r"\b(?:i was|i'm|i am) born (?:in|on)\b",
    (
        rf"\bi(?:'m| am|'ve| have)?(?: now| currently| still| just| recently| also)* (?:work|works|working"
        rf"|been working) (?:at"
        rf"|for|with) (?:the )?{_CAP}"
    ),
    r"\bi(?:'m| am)?(?: now| currently| still)* (?:work|working) as an? \w+",
    (
        r"\bmy (?:new )?(?:job|role|title|profession|occupation|employer|company) (?:title )?(?:is"
        r"|'s) (?:at |with |called )?"
        r"(?:an? |the )?(?-i:[A-Z])?\w+(?: (?:manager|engineer|designer|nurse|teacher|developer|analyst"
        r"|director|assistant))"
    ),
    (
        rf"\b(?:my|his|her|their|my \w+s'|{_CAP}'s|{_KIN}'s|our) (?:\d+(?:st|nd|rd|th) )?(?:birthday"
        rf"|b-?day|(?:wedding )?anniversary)"
        rf"(?:'s| is| falls)(?: on| in| the)? (?:(?:{_CAP}|\d+\w*|next|this|tomorrow|today|in)\b)"
    ),
    (
        r"\b(?:i|he|she|my \w+)(?:'m|'s| am| is| just|'ll be| will be)? (?:turned|turning|turn"
        r"|turns)? ?\d{1,2} years old\b"
    ),
    r"\bi(?:'ve)? (?:just |recently )?turned \d\d\b(?! (?:corners|pages))",
    r"\bi(?:'ve)? (?:just |recently )?started (?:a |my )?(?:new job|working) (?:at|as|for|with)\b",
    rf"\bi(?:'m| am) (?:the|an?) (?:\w+ ){{1,3}}(?:at|for) (?:the )?{_CAP}",
    r"\bi (?:just |recently )?(?:got|am|'m getting|am getting) (?:married|engaged|divorced)\b",
)

_CONTACT = (
    r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    r"(?<![\w.])(?:\+\d[\d ()-]{7,16}\d|\(\d{3}\) ?\d{3}[- ]\d{4}|\d{3}[-. ]\d{3}[-. ]\d{4})(?!\w)",
    (
        r"\b(?:phone|mobile|cell|telephone|fax|whatsapp|my|his|her|our|passport|account|membership|member"
        r"|policy|customer"
        r"|booking|order|licen[cs]e|reservation|confirmation) (?:\w+ )?(?:number|no\.|#|id|code|pin|handle"
        r"|e-?mail(?: address)?"
        r"|address)(?:'s| is|:| =)+ ?\S*[\d@]"
    ),
    r"\b(?:reach|call|text|contact|ring|e-?mail|message) (?:me|us|him|her) (?:at|on) (?=\S*[\d@])",
)

_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb"
    r"|mar|apr|jun"
    r"|jul|aug|sept?|oct|nov|dec)"
)
_WHEN = (
    rf"(?:(?:the )?(?:end of|next|this|coming|following)? ?(?:{_WEEKDAY}|tomorrow|tonight|today|noon"
    rf"|midnight|eod|cob|week"
    rf"|month|year|quarter|weekend|(?:the )?end of|{_MONTH}\b|(?:the )?\d{{1,2}}))"
)
_DEADLINE = (
    (
        rf"\b(?:is|are|was|'s|it's|be|falls|comes|comes up|currently) due (?:by|on|at|in|before|back"
        rf"|for)?\s?(?:the )?{_WHEN}"
    ),
    (
        rf"\b(?:deadline|due date|cut-?off)\b.{{0,40}}(?:\bis\b|'s\b|\bon\b|\bby\b|:|\bmoved\b"
        rf"|\bextended\b).{{0,20}}{_WHEN}"
    ),
    (
        rf"\b(?:need|needs|have to|has to|must|should|gotta|got to|supposed to|want|please|due|required"
        rf"|promised|expected|has"
        rf"|submit|finish|deliver|send|hand in|pay|file|register|complete|reply|respond|return|apply|rsvp"
        rf"|ready)\b.{{0,80}}"
        rf"\b(?:by|no later than|before) (?:the )?(?:end of (?:the )?|next |this |coming )?(?:{_WEEKDAY}"
        rf"|tomorrow|tonight|noon|midnight"
        rf"|eod|cob|close of business|{_MONTH}\b|\d{{1,2}}(?::\d{{2}}| ?[ap]\.?m|st|nd|rd|th|\.| {_MONTH})"
        rf"|the day|day|week"
        rf"|month|year|quarter)\b"
    ),
    rf"\b(?:expires?|runs out|closes?|ends?) (?:on|by|at|in) (?:the )?(?:{_WEEKDAY}|{_MONTH} \d|\d)",
    (
        r"\bno later than\b|\bdue (?:by|on|tomorrow|tonight|today|next (?:week|month)|this (?:week|month"
        r"|friday))\b"
    ),
)

_DECISION = (
    (
        r"\b(?:i|we)(?:'ve| have|'d| had)?(?: both| all| finally| just| also| recently"
        r"| now)* decided (?:to|on|that|against|not"
        r"|i'll|we'll|we'd|i'd|i|we)\b(?! (?:try|see|check|take a (?:look|break)))"
    ),
    r"\b(?:we|we've|we have|they)(?: all| both| finally)* agreed (?:to|that|on|upon|we)\b",
    r"\b(?:i|we)(?:'ve| have)?(?: both| all| finally)* (?:settled on|opted (?:for|to)|ruled out)\b",
    (
        r"\b(?:i've|we've|i have|we have)(?: finally)? (?:chosen|picked|made (?:up my mind|a decision"
        r"|the decision|our decision))"
    ),
    r"\b(?:the |our |my |final )+(?:decision|verdict|resolution)(?: is| was|:)",
    r"\b(?:i|we) (?:chose|picked) .{1,40} (?:over|instead of)\b",
    r"\b(?:i'm|we're|i am|we are) going (?:to go )?with (?:\w+ )?(?-i:[A-Z])",
    (
        r"\b(?:let's|we'll|i'll|we will|i will|we're|i'm)(?: just)? (?:go|going) with (?:the (?!flow)"
        r"|option|plan|a|an|that|this)"
    ),
    r"\bmade up my mind\b|\bit(?:'s| is) (?:decided|settled|agreed|final)\b",
)

_SOFT = (
    r"(?:believe|have fun|enjoy|relax|breathe|smile|take care|take (?:a|some|time|lots|plenty)|be kind"
    r"|celebrate"
    r"|recharge|rest|love|appreciate|laugh|be proud|stay|keep|have (?:a|some)|live|dream|you(?:'re|'ve"
    r"| are| have| can)|why"
    r"|how|who|just|even|sometimes|always|never|stop|slow|pause|to (?:pause|slow|breathe|have|take"
    r"|enjoy|relax|smile|be|stay"
    r"|keep|celebrate|rest|appreciate|love|live|believe|laugh)|i'm (?:always |right )?here|we're"
    r"|\w+ing\b|the (?:little|small|good)|it's (?:ok|okay|never|about|all)|we(?:'re| are)|there's|life)"
)
_REMEMBER = (
    (
        r"^(?:(?:please|pls|also|and|but|so|oh|just|hey|ok|okay|btw|by the way|can you|could you|would you"
        r"|will you|i need you to"
        r"|i want you to|you (?:should|must|need to|have to)|important)[,:]?\s+){0,4}(?:remember"
        r"|don't (?:ever )?forget|do not"
        rf" forget|never forget|memori[sz]e|bear in mind|keep in mind|take note|make a note|note down"
        rf"|write (?:this|that|it) down"
        rf"|jot (?:this|that|it) down|save (?:this|that)|note(?= that|:)|remind me|nb)\b(?:,|:| that| to"
        rf"| this| of| about| my| our| the| i"
        rf"| i'm| we| me| it| down| his| her| {_CAP})(?! ?{_SOFT}\b)"
    ),
    r"\b(?:keep|bear) in mind that\b|\b(?:for the record|for (?:future|your) reference|note to self)\b",
    r"\b(?:want|need|like) you to (?:remember|note|know that)\b",
    r"^(?:please |pls )?(?:remember|memori[sz]e|save|note) (?:this|that)?:",
)

RULES: dict[str, re.Pattern[str]] = {
    name: re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)
    for name, patterns in (
        ("remember", _REMEMBER),
        ("safety", _SAFETY),
        ("constraint", _CONSTRAINT),
        ("identity", _IDENTITY),
        ("contact", _CONTACT),
        ("deadline", _DEADLINE),
        ("decision", _DECISION),
    )
}
"""The closed set of rules, in the order in which they are tried."""

# A sentence without any of these letters cannot satisfy the rule; looking for them costs a tenth of trying.

# Parts of words; `_` stands for a space.
_SAFETY_HINTS = """
dangerous transplant remission deficien died doctor near around sends sent _put_
_er _icu _ill a&e acetamin adderall adhd advil aids airway albuterol allerg alzheimer anaph antibiotic
antihist anxiety apn arrhythmia arthritis aspirin asthma attack autis azepam bipolar birth blind blocker
blood breath cancer carr chemo cillin clot coagul codeine codone colitis condition copd coumadin crohn
cycline deadly deaf dementia depress diabet diagnos dialysis digest digoxin dipine disease disorder
eliac eliquis emergency emia emic end_my end_up ended_up endometriosis ends_up epi failure fatal fatigue
fibrillation fibrosis floxacin formin g6pd give gliptin gout heart heparin hepatitis hiv hives hospital
humira hurt hypertens illness immun inhaler injection insulin intoleran kidney kill lethal leuk lexapro
lipitor lithium liver lukast lung lupus lymphoma mab mao medic meds metformin methadone methotrexate
migraine mophilia mophiliac morphine murmur mycin nsaid olol opioid osteoporosis oxetine ozempic
pacemaker pain painkiller palpit paracetamol parkinson phenylketon pills plavix poison positive prazole
prediabet predniso pregnant prep pressure pril problem process profen prozac ptsd pump rash react
resuscitate ritalin sartan schizophren sclerosis seizure sertraline shock sick sickle sone ssri statin
steroid sting stroke suicid sulfa surgery swell synthroid tablet therapy thinner threatening throat
thyrox tidine tinib tolerate tongue toxic tramadol treatment trigger triptan tumo tylenol warfarin xaban
xanax xarelto zolam zoloft
"""
_CONSTRAINT_HINTS = """
can't cannot not never won't don't doesn't longer vegan vegetarian pescatarian teetot kosher halal sober
always whatever circumstances budget rent price cost spen must has have need avoid wheelchair only
"""

HINTS: dict[str, tuple[str, ...]] = {
    "safety": tuple(part.replace("_", " ") for part in _SAFETY_HINTS.split()),
    "constraint": tuple(_CONSTRAINT_HINTS.split()),
    "contact": ("@", *"0123456789"),
    "deadline": (
        "due",
        "deadline",
        "cut",
        " by ",
        "before",
        "no later",
        "expire",
        "runs out",
        "close",
        "end",
    ),
    "decision": (
        "decid",
        "agree",
        "settled",
        "opted",
        "ruled",
        "chose",
        "pick",
        "made",
        "decision",
        "verdict",
        "resolution",
        "mind",
        "with",
        "final",
    ),
}
"""A sentence without any of a rule's parts cannot satisfy it; looking for them costs a tenth of trying."""
