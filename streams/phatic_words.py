"""The everyday words behind `lamina.streams.phatic`: politeness, praise and encouragement, in English."""

import re

_COURTESY_TEXT = """
thanks thank thankyou thx ty cheers welcome pleasure please pls sorry apologies hello hi hey hiya howdy
greetings bye goodbye goodnight good morning afternoon evening night congrats congratulations kudos
bravo farewell later soon wow woah whoa yay aw aww awww awwww oh ooh ah aha haha hahaha ha hehe heh lol
hmm hm ugh phew ouch oops woohoo yum yikes omg gosh man dude buddy folks guys guy dear pal mate hurray
hooray see talk hallo danke dankeschön schön bitte guten gute morgen tag abend nacht tschüss moin servus
merci beaucoup bonjour bonsoir salut hola gracias adiós buenos buenas días tardes noches obrigado
obrigada olá bom boa dia tarde noite tchau ciao grazie buongiorno buonasera prego arrivederci dank dag
hej tack namaste
你好 您好 谢谢 多谢 再见 早安 晚安 早上 上好 晚上 こん んに にち ちは あり りが がと とう さよ よう うな なら
"""
COURTESY: frozenset[str] = frozenset(_COURTESY_TEXT.split())
"""What greets, thanks, parts or exclaims, also in some other languages (by pairs of characters where
no spaces divide words)."""

_EVALUATION_TEXT = """
good great nice cool awesome amazing wonderful fantastic fabulous excellent brilliant superb incredible
lovely beautiful gorgeous stunning cute adorable sweet perfect impressive impressed inspiring
inspirational inspired motivating motivated rewarding fulfilling satisfying meaningful special unique
important valuable vital crucial essential key interesting fascinating intriguing exciting excited
thrilling thrilled fun funny hilarious enjoyable delightful delicious delish tasty scrumptious yummy
tough hard rough difficult challenging sad awful terrible horrible frustrating scary stressful
overwhelming crazy insane unbelievable unreal wild dope neat epic rad admirable commendable remarkable
outstanding extraordinary exceptional phenomenal marvelous marvellous spectacular magical memorable
unforgettable priceless heartwarming touching moving powerful uplifting refreshing calming soothing
relaxing peaceful tranquil serene cozy cosy comfy breathtaking mesmerizing captivating vivid best better
wise smart clever thoughtful kind generous caring doable relief honor honour privilege helpful useful
handy worthwhile worthy worth encouraging supportive reassuring promising positive optimistic impactful
fine decent solid bad worst worse easy proud glad happy pleased stoked pumped hyped delighted grateful
thankful blessed honored honoured lucky fortunate passionate determined dedicated resilient courageous
brave strong stronger confident talented gifted skilled love loved loving adore
"""
EVALUATION: frozenset[str] = frozenset(_EVALUATION_TEXT.split())
"""What judges or praises: a sentence whose predicate is one of these comments rather than tells."""

_ENCOURAGEMENT_TEXT = """
pride joy joyful happiness gratitude appreciate appreciated appreciates appreciation luck like likes
liked enjoy enjoyed enjoying admire admiration respect hope hoping hopefully wish wishing feel feels
feeling feelings felt excitement enthusiasm passion determination dedication resilience perseverance
courage bravery strength confidence belief believe believing trust faith talent talents potential effort
efforts positivity optimism energy spirit attitude vibe vibes smile smiles heart mind inspire inspires
inspiration motivate motivates motivation kindness encouragement encourage support supported supporting
supports advice keep keeping keeps go goes going give giving never forget remember reminder remind
reminds reminding step steps forward ahead continue stay staying focus focused possible impossible
obstacle obstacles challenge challenges overcome push pushing shine shining rock rocks rocking chase
chasing dream dreams goal goals reach achieve achieving succeed success journey path deserve deserves
earned off hit get gets getting sky limit grow growing growth learn learning progress accomplish
accomplished accomplishment accomplishments achievement achievements milestone acts act crush nailed
rooting cheering cheer cheers paid paying pays quit gives guts power ability abilities tackle cherish
cherishing spread spreading adventure blast spirits mood
"""
ENCOURAGEMENT: frozenset[str] = frozenset(_ENCOURAGEMENT_TEXT.split())
"""What cheers on."""

_EVERYDAY_TEXT = """
yes yeah yep yup ya ok okay sure definitely absolutely totally exactly indeed right true truly agreed
agree course understood noted gotcha certainly surely nope nah precisely alright fair completely
honestly obviously clearly worries worry problem problems doubt really so quite kinda pretty much super
big huge little small real genuinely incredibly amazingly beautifully extremely enough especially
seriously simply extra deeply highly insanely come comes coming take takes taking make makes making made
see seeing know knowing knows think thinking say saying tell telling talking chat chatting hear hearing
let look looks looking looked sound sounds sounded seem seems mean means meant try trying tried help
helps helping helped want wants need needs do done happen happens happened happening bet guess wait
waiting imagine picture sharing shared find finding bring brings bringing show shows showing put putting
turn turns turned gonna wanna gotta able ask keeps matter matters must might may thing things something
anything everything nothing way ways lot lots ton tons bunch bit bits time times day days moment moments
memory memories life lives world people person someone somebody anyone anybody everyone everybody others
one ones friend friends friendship word words idea ideas thought thoughts point difference impact effect
influence example stuff kind type sort reason purpose sense chance experience experiences connection
connections pic pics pictures photo photos result outcome bond together togetherness teamwork peace
beauty creativity now still always ever forever already yet lately today's meanwhile first next last
long longer while ago since sometimes finally almost even though although plus also maybe perhaps either
else instead without along around across towards whatever whenever wherever however another every many
new besides actually basically y'know anymore back well well-deserved huh too btw anyway up short closer
till how've story stories got share safe surprise often prob eventually letting known
"""
EVERYDAY: frozenset[str] = frozenset(_EVERYDAY_TEXT.split())
"""What agrees, hedges or fills, and nouns too general to name anything."""

GENERIC: frozenset[str] = COURTESY | EVALUATION | ENCOURAGEMENT | EVERYDAY
"""Words that carry nothing by themselves."""

# Fixed phrases whose nouns would carry something elsewhere ("I got the job").
PHRASES = re.compile(
    r"\b(?:great|good|nice|awesome|amazing|incredible|excellent|fantastic|wonderful|brilliant|solid"
    r"|smart|well)"
    r" (?:job|work|call|choice|plan|news|thinking|question|taste|catch|start|effort|decision)\b"
    r"|\bhard work\b|\bworks? for me\b|\b(?:hang in|been|be|always) there\b|\bin advance\b|\bon track\b"
    r"|\bwork(?:ed|ing|s)? (?:so |really |very )?hard\b|\bkeep (?:on )?working\b|\bget to work\b"
    r"|\b(?:got|have|has|gotten) my back\b|\bmy (?:dreams?|goals?|best|heart|day|thoughts)\b"
    r"|\bsince (?:we|our) (?:last )?(?:caught up|chat(?:ted)?|talk(?:ed)?|spoke|met)\b"
    r"|\bkeep(?:ing)? (?:you|me|ya|us) (?:posted|updated)\b|\bcatch (?:you|ya|up)\b|\bfeel free\b"
    r"|\bin (?:my|your) corner\b|\bcheck (?:it|them|that) out\b|\bwork(?:s|ed|ing)? (?:out|for you"
    r"|(?:well )?together)\b"
    r"|\bstop (?:you|me|us)\b|\bhold (?:you|me|us) back\b|\bspending time\b|\bsounds like a plan\b"
    r"|\bover the moon\b|\bsleep well\b|\bsafe travels\b|\btake care\b|\bfingers crossed\b|\bno rush\b"
    r"|\bwork (?:it|this) out\b|\bway to go\b|\ba pic(?:ture)? of health\b|\bmy (?:friend|pleasure"
    r"|goodness|god"
    r"|gosh|bad|dear|man)\b|\bmade my day\b|\bgo get (?:'?em|it)\b",
    re.IGNORECASE,
)
